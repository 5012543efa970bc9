// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// An MCPServer is one by its whole kind: an object of another kind whose name begins like that is none, nor is one of another product.
func TestAnMCPServerIsOneByItsWholeKind(t *testing.T) {
	for argument, want := range map[string]string{
		"mcpserver/web": "web", "MCPServers/web": "web", "mcpservers.toolhive.stacklok.dev/web": "web", "mcpserver": "", "deployment/web": "",
		"mcpserver.v1beta1.toolhive.stacklok.dev/web": "web", "mcpserver.kagent.dev/web": "", "mcpservers.v1.kagent.dev/web": "",
		"mcpserverentry/web": "", "mcpserverentries.toolhive.stacklok.dev/web": "",
	} {
		asked, err := explainedOf([]string{argument})
		if asked.server != want {
			t.Errorf("%s is MCPServer %q, want %q", argument, asked.server, want)
		}
		if foreign := strings.HasPrefix(argument, "mcpserverentr") || strings.Contains(argument, "kagent"); (err != nil) != foreign {
			t.Errorf("%s: error %v", argument, err)
		}
	}
}

// A path that the kind does not have is a mistake of the user's, and not a field that nobody claims.
func TestAFieldThatDoesNotExistIsAnErrorOfExplain(t *testing.T) {
	for argument, exists := range map[string]bool{
		"deployment:.spec.replicas": true, "deployment:.spec.replica": false, "deployment:spec.replicas": false, "deployment:.spec.replicas.x": false,
		`deployment:.spec.template.spec.containers[name="x"].image`: true, `deployment:.spec.template.spec.containers[name="x"].imag`: false,
		"deployment:.spec.template.spec.containers.image": false, "service:.metadata.labels.a.b/c": true, "service:.spec.ports[": false,
		"mcpserver:.status.conditions": true, "mcpserver:.status.condition": false, "mcpoidcconfig:.metadata.finalizers": true,
	} {
		_, err := explainedOf([]string{argument})
		if (err == nil) != exists {
			t.Errorf("%s: %v", argument, err)
		}
	}
	for _, w := range claimants() {
		for _, path := range texts(append(slices.Clone(w.Claim.Within), w.Claim.Except...)) {
			if !writers.HasField(cluster.VersionOf(w.Kind), path) {
				t.Errorf("%s of %s, which %s claims, does not exist", path, w.Kind, w.Name)
			}
		}
	}
}
