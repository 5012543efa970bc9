// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// TestToolConfig has an MCPServer refer to an MCPToolConfig, which gives a tool another name and description, and hides the
// others. Then it hides another one.
func TestToolConfig(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	create(t, toolhive(ns).MCPToolConfigs(ns.Name).Create, &v1beta1.MCPToolConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "tools"},
		Spec: v1beta1.MCPToolConfigSpec{
			// By the names that clients see.
			ToolsFilter:   []string{"say"},
			ToolsOverride: map[string]v1beta1.ToolOverride{"echo": {Name: "say", Description: "Repeats what you say."}},
		},
	})
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "tools"}
	})
	client := dial(t, ns, "")
	listed := client.List(t.Context())
	if len(listed.Tools) != 1 || listed.Tools[0].Name != "say" || listed.Tools[0].Description != "Repeats what you say." {
		t.Errorf("the tools are %v, want say alone, with another description", listed)
	}
	hello := map[string]any{"text": "hello"}
	gets(t, "say", client.Call(t.Context(), "say", hello), "hello")
	for tool, arguments := range map[string]map[string]any{"echo": hello, "identity": nil} {
		if outcome := client.Call(t.Context(), tool, arguments); outcome.Err == nil {
			t.Errorf("%s is hidden, and was called: %v", tool, outcome)
		}
	}

	edit(t, toolhive(ns).MCPToolConfigs(ns.Name), "tools", func(config *v1beta1.MCPToolConfig) {
		config.Spec.ToolsFilter = []string{"identity"}
	})
	inEffect(t, ns, server.Status.ToolConfigHash, func(s v1beta1.MCPServerStatus) string { return s.ToolConfigHash })
	if listed := client.List(t.Context()); !slices.Equal(mcpclient.Names(listed.Tools), []string{"identity"}) {
		t.Errorf("after the edit the tools are %v, want identity", listed)
	}
	gets(t, "identity", client.Call(t.Context(), "identity", nil), served+"-0 1")
}
