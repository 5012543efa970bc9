// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The names are written out here: they are ToolHive's, and do not change with ours.
func TestNamesOfUpstreamsChildren(t *testing.T) {
	servers, err := newServers(places{name: measured, servers: 1}, v1beta1.TransportStreamableHTTP)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ServiceAccount/server-00000-proxy-runner", "ServiceAccount/server-00000-sa",
		"Role/server-00000-proxy-runner", "RoleBinding/server-00000-proxy-runner",
		"ConfigMap/server-00000-runconfig", "Service/mcp-server-00000-proxy", "Deployment/server-00000",
	}
	byRunners := []string{"StatefulSet/server-00000", "Service/mcp-server-00000-headless", "Service/mcp-server-00000"}
	for played, want := range map[bool][]string{false: want, true: append(want, byRunners...)} {
		got, err := upstreamNames(played)(servers)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("played: %t, %v (-want +got):\n%s", played, err, diff)
		}
	}
}
