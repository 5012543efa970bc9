// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers_test

import (
	"slices"
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// The plugin writes what none of the operator's writers does, under a name that the API server takes and that none of
// them has.
func TestThePluginsNameIsNoOtherWriters(t *testing.T) {
	registry := managers.Registry()
	if registry.Knows(managers.Plugin) {
		t.Error("the operator has a writer of the plugin's name")
	}
	if err := registry.Register(managers.PluginWriter()); err != nil {
		t.Error(err)
	}
	if class := managers.ClassOf(managers.Plugin, ""); class != managers.ClassKubectl {
		t.Errorf("the plugin is taken for %s", class)
	}
}

// While it is handed back, whatever the operator's writers may own of an object is the plugin's.
func TestHandbackWritersCoverAllWriters(t *testing.T) {
	writers := managers.HandbackWriters()
	for _, w := range managers.Registry().Writers() {
		for _, path := range w.Claim.Within {
			i := slices.IndexFunc(writers, func(h fieldmanager.Writer) bool { return h.Kind == w.Kind && h.Subresource == w.Subresource })
			if i < 0 || writers[i].Name != managers.Plugin || !writers[i].Claim.Covers(path) {
				t.Errorf("%s of %s by %s is not covered", path, w.Kind, w.Name)
			}
		}
	}
}
