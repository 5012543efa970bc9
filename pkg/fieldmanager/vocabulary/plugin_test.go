// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package vocabulary_test

import (
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

// The plugin writes what none of the operator's writers does, under a name that the API server takes and that none of
// them has.
func TestPluginWriter(t *testing.T) {
	registry := vocabulary.Registry()
	if registry.Knows(vocabulary.Plugin) {
		t.Error("the operator has a writer of the plugin's name")
	}
	if err := registry.Register(vocabulary.PluginWriter()); err != nil {
		t.Error(err)
	}
	if class := vocabulary.ClassOf(vocabulary.Plugin, ""); class != vocabulary.ClassKubectl {
		t.Errorf("the plugin is taken for %s", class)
	}
}
