// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// affinity makes an MCPServer ask for a session affinity.
func affinity(of string) harness.Change {
	return func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = of }
}

// affinityOf is the affinity of the Service between proxy and backend, as the API server has it, and the fields of it that Freehold owns.
func affinityOf(t *testing.T, ns *harness.Namespace, server string) (value string, owned []string) {
	t.Helper()
	service := ns.MustObject(t, harness.BackendService, server)
	value, _, _ = unstructured.NestedString(service.Object, "spec", "sessionAffinity")
	if config, found, _ := unstructured.NestedMap(service.Object, "spec", "sessionAffinityConfig"); found {
		value += fmt.Sprint(config)
	}
	claims := harness.ClaimsOf(map[harness.Component]*unstructured.Unstructured{harness.BackendService: service})
	for _, path := range claims[harness.BackendService][managers.Service+" Apply "] {
		if strings.HasPrefix(path, ".spec.sessionAffinity") {
			owned = append(owned, path)
		}
	}
	slices.Sort(owned)
	return value, owned
}

const sticky = "ClientIPmap[clientIP:map[timeoutSeconds:1800]]"

// TestBackendServiceFollowsTheSessionAffinity edits spec.sessionAffinity in both directions: the two Services change, and nothing else. A
// session of transport sse needs its pod, whatever the spec says, and so does one that the proxy keeps in Redis.
func TestBackendServiceFollowsTheSessionAffinity(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const edited = "edited"
	ns.Create(t, harness.HTTPServer(edited, harness.Replicas(1, 2)))
	for name, server := range map[string]*v1beta1.MCPServer{
		"none":  harness.HTTPServer("none", harness.Replicas(1, 2), affinity("None")),
		"sse":   harness.Server("sse", v1beta1.TransportSSE, harness.Replicas(1, 2), affinity("None")),
		"redis": harness.HTTPServer("redis", harness.Replicas(1, 2), harness.SharedSessions),
	} {
		ns.Create(t, server)
		ns.AwaitSettled(t, name)
	}
	ns.AwaitSettled(t, edited)
	for name, want := range map[string]string{edited: sticky, "none": "None", "sse": sticky, "redis": sticky} {
		if value, _ := affinityOf(t, ns, name); value != want {
			t.Errorf("the Service of the backend of %s has %s, want %s", name, value, want)
		}
	}

	for _, step := range []struct {
		affinity, want string
		owned          []string
	}{
		{"None", "None", []string{".spec.sessionAffinity"}},
		{"ClientIP", sticky, []string{".spec.sessionAffinity", ".spec.sessionAffinityConfig.clientIP.timeoutSeconds"}},
	} {
		mark := ns.Mark(t)
		ns.Edit(t, edited, affinity(step.affinity))
		ns.AwaitSettled(t, edited)
		ns.AwaitCalm(t, edited)
		value, owned := affinityOf(t, ns, edited)
		if value != step.want {
			t.Errorf("after an edit to %s it has %s, want %s", step.affinity, value, step.want)
		}
		if diff := cmp.Diff(step.owned, owned); diff != "" {
			t.Errorf("after an edit to %s, fields that Freehold owns (-want +got):\n%s", step.affinity, diff)
		}
		for _, write := range ns.Writes(t, mark) {
			if r := write.Resource; r != "services" && r != "mcpservers" && r != "events" {
				t.Errorf("an edit to %s cost the write %v", step.affinity, write)
			}
		}
	}
}

// TestBackendAffinityWithoutOwner removes all owners of the Service between the tiers, while no operator runs and the spec begins to ask
// for None. The timeout has no owner then, and the API server accepts none without the affinity.
func TestBackendAffinityWithoutOwner(t *testing.T) {
	t.Parallel()
	const name = "web"
	ns := env.Namespace(t)
	first := ns.Operate(t)
	ns.Create(t, harness.HTTPServer(name, harness.Replicas(1, 2)))
	ns.AwaitSettled(t, name)
	harness.Stop(t, first)
	ns.MustPatch(t, harness.Author, harness.BackendService, name, harness.Replace("/metadata/managedFields", []any{map[string]any{}}))
	ns.Edit(t, name, affinity("None"))
	ns.Operate(t)
	ns.AwaitSettled(t, name)
	if value, _ := affinityOf(t, ns, name); value != "None" {
		t.Errorf("it has %s, want None", value)
	}
}

// TestBackendAffinityOfAnotherWriterIsAConflict has another client own the affinity of the Service between the tiers.
func TestBackendAffinityOfAnotherWriterIsAConflict(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name, other = "web", "mesh-operator"
	ns.Create(t, harness.HTTPServer(name, harness.Replicas(1, 2)))
	ns.AwaitSettled(t, name)
	ns.MustApply(t, other, harness.BackendService, name, true, map[string]any{"spec": map[string]any{"sessionAffinity": "ClientIP"}})
	ns.Edit(t, name, affinity("None"))
	ns.AwaitConflict(t, name, other, ".spec.sessionAffinity")
	if value, _ := affinityOf(t, ns, name); !strings.HasPrefix(value, "ClientIP") {
		t.Errorf("it has %s, which another client does not want", value)
	}
	ns.MustApply(t, other, harness.BackendService, name, true, map[string]any{})
	ns.AwaitNoConflict(t, name)
	ns.AwaitSettled(t, name)
	if value, _ := affinityOf(t, ns, name); value != "None" {
		t.Errorf("after the other client let go it has %s", value)
	}
}
