// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestURLIsOfTheMCPServersOwnService has MCPServers whose proxy runs, and whose Service belongs to another MCPServer, or is being deleted.
// They name no URL, and are not Ready: clients would reach another backend, or nothing. An edit of the Service takes nothing away.
func TestURLIsOfTheMCPServersOwnService(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer("pay-proxy"))
	ns.AwaitStatus(t, "pay-proxy", harness.Fine...)
	ns.Create(t, harness.HTTPServer("pay"))
	ns.Create(t, harness.HTTPServer("web"))
	ns.AwaitSettled(t, "web")
	noURL := func(server *v1beta1.MCPServer) error {
		if status := server.Status; status.ReadyReplicas == 0 || status.URL != "" || status.Phase == v1beta1.PhaseReady {
			return fmt.Errorf("%d proxies are ready, the phase is %s and the URL %q", status.ReadyReplicas, status.Phase, status.URL)
		}
		return nil
	}
	ns.AwaitServer(t, "pay", "names no URL while its Service is another's", noURL)
	ns.Delete(t, "pay-proxy", metav1.DeletePropagationBackground)
	if status := ns.AwaitStatus(t, "pay", harness.Fine...).Status; status.URL == "" {
		t.Error("pay has its Service, and no URL")
	}

	history := ns.Record(t, harness.FormOf(harness.ServerItself).Resource)
	ns.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })
	ns.AwaitSettled(t, "web")
	for _, version := range harness.Named("web", history.Complete(t)) {
		if url, _, _ := unstructured.NestedString(version.Object, "status", "url"); url == "" {
			t.Error("the edit of the Service took the URL away")
		}
	}

	ns.MustPatch(t, harness.Hand, harness.ProxyService, "web", harness.Add("/metadata/finalizers", []string{"example.com/balancer"}))
	if err := ns.Objects(harness.ProxyService).Delete(t.Context(), "mcp-web-proxy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.AwaitServer(t, "web", "names no URL while its Service is being deleted", noURL)
	ns.MustPatch(t, harness.Hand, harness.ProxyService, "web", harness.Remove("/metadata/finalizers"))
	if status := ns.AwaitStatus(t, "web", harness.Fine...).Status; status.URL == "" {
		t.Error("web has its Service again, and no URL")
	}
}
