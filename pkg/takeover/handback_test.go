// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/writers"
)

const closedGate = "9223372036854775807"

func owned(object map[string]any, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: object}
	o.SetNamespace("tools")
	o.SetResourceVersion("7")
	o.SetManagedFields(entries)
	return o
}

func entry(manager, apiVersion, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, Subresource: subresource,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// example is an MCPServer of Freehold's and the two of its objects of which something has to be otherwise for ToolHive.
func example(generation int64, gate string) (server *unstructured.Unstructured, children []*unstructured.Unstructured) {
	server = owned(map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.MCPServerKind,
		"metadata": map[string]any{"name": "web", "uid": "server", "generation": generation, "finalizers": []any{v1beta1.Finalizer}},
		"status": map[string]any{"phase": "Ready", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "FieldsOwned", "status": "True"},
		}},
	},
		entry(managers.Finalizer, v1beta1.SchemeGroupVersion.String(), "", `{"f:metadata":{"f:finalizers":{"v:\"`+v1beta1.Finalizer+`\"":{}}}}`),
		entry(managers.Status, v1beta1.SchemeGroupVersion.String(), "status", `{"f:status":{"f:phase":{},"f:conditions":{
			"k:{\"type\":\"Ready\"}":{".":{},"f:type":{},"f:status":{}},"k:{\"type\":\"FieldsOwned\"}":{".":{},"f:type":{},"f:status":{}}}}}`),
	)
	set := owned(map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "web", "uid": "set", "annotations": map[string]any{
			"freehold.dev/source": "server/1", "freehold.dev/references": "mcpoidcconfig/idp=idp/1@2", "other": "stays",
		}},
		"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{v1beta1.AnnotationGeneration: gate},
		}}},
	},
		entry(managers.Backend, "apps/v1", "", `{"f:metadata":{"f:annotations":{"f:freehold.dev/source":{},"f:freehold.dev/references":{}}},
			"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:`+v1beta1.AnnotationGeneration+`":{}}}}}}`),
		entry(managers.BackendReplicas, "apps/v1", "", `{"f:spec":{"f:replicas":{}}}`),
		entry("somebody", "apps/v1", "", `{"f:metadata":{"f:annotations":{"f:other":{}}}}`),
	)
	service := owned(map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "mcp-web", "uid": "service", "ownerReferences": []any{map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.MCPServerKind, "name": "web", "uid": "server", "controller": true,
		}}},
	}, entry(managers.Service, "v1", "", `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"server\"}":{}}}}`))
	return server, []*unstructured.Unstructured{service, set}
}

// step does the next step of what is to be done for an object, as the API server would; done tells that none is left.
func step(t *testing.T, r *takeover.Return, live *unstructured.Unstructured, n int) (after *unstructured.Unstructured) {
	t.Helper()
	schema := writers.Schema()
	var patch []byte
	var err error
	switch n {
	case 0:
		patch, err = r.Gather(live, time.Unix(1, 0))
	case 1:
		config, err := r.Config(schema, live)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"uid", "resourceVersion"} {
			unstructured.RemoveNestedField(config, "metadata", field)
		}
		if after, err = apply.Merge(schema, live, config, managers.Plugin, r.Subresource); err != nil {
			t.Fatal(err)
		}
		return after
	default:
		patch, err = r.Pass(live, time.Unix(1, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	if patch == nil {
		return live
	}
	if after, err = ownership.Patched(live, patch); err != nil {
		t.Fatal(err)
	}
	return after
}

// run hands an MCPServer back, but ends after so many steps, and returns all objects as they are then.
func run(t *testing.T, server *unstructured.Unstructured, children []*unstructured.Unstructured, steps int) (*unstructured.Unstructured, []*unstructured.Unstructured) {
	t.Helper()
	for _, r := range takeover.Handback(server, children) {
		for n := range 3 {
			if steps--; steps < 0 {
				return server, children
			}
			if r.Ref.Kind == managers.MCPServer {
				server = step(t, &r, server, n)
				continue
			}
			for i, child := range children {
				if child.GetKind() == r.Ref.Kind.Kind {
					children[i] = step(t, &r, child, n)
				}
			}
		}
	}
	return server, children
}

// TestRoleIsAsToolHiveMakesIt: a runner may attach to pods where it has to, which the last rule allows.
func TestRoleIsAsToolHiveMakesIt(t *testing.T) {
	for transport, want := range map[string][]string{
		"":                {"statefulsets", "services", "pods", "pods/log", "configmaps", "pods/attach"},
		"stdio":           {"statefulsets", "services", "pods", "pods/log", "configmaps", "pods/attach"},
		"sse":             {"statefulsets", "services", "pods", "pods/log", "configmaps"},
		"streamable-http": {"statefulsets", "services", "pods", "pods/log", "configmaps"},
	} {
		server, _ := example(1, closedGate)
		if err := unstructured.SetNestedField(server.Object, transport, "spec", "transport"); err != nil {
			t.Fatal(err)
		}
		role := owned(map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "web-proxy-runner", "uid": "role"},
			"rules": []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"statefulsets"}, "verbs": []any{"get"}}},
		}, entry(managers.Access, "rbac.authorization.k8s.io/v1", "", `{"f:rules":{}}`))
		_, after := run(t, server, []*unstructured.Unstructured{role}, 100)
		rules, _, _ := unstructured.NestedSlice(after[0].Object, "rules")
		var got []string
		for _, rule := range rules {
			resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
			got = append(got, resources...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transport %q (-want +got):\n%s", transport, diff)
		}
	}
}

// TestUnreadable: what Go parses ToolHive's operator can read.
func TestUnreadable(t *testing.T) {
	limits := func(change func(*v1beta1.RateLimitConfig, *v1beta1.RateLimitBucket)) func(*v1beta1.MCPServerSpec, string) {
		return func(spec *v1beta1.MCPServerSpec, duration string) {
			spec.RateLimiting = &v1beta1.RateLimitConfig{Tools: []v1beta1.ToolRateLimitConfig{{Name: "a"}, {Name: "b"}}}
			change(spec.RateLimiting, &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: duration})
		}
	}
	for path, set := range map[string]func(*v1beta1.MCPServerSpec, string){
		"spec.proxyReadTimeout":                  func(spec *v1beta1.MCPServerSpec, duration string) { spec.ProxyReadTimeout = duration },
		"spec.rateLimiting.shared.refillPeriod":  limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) { c.Shared = b }),
		"spec.rateLimiting.perUser.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) { c.PerUser = b }),
		"spec.rateLimiting.tools[1].shared.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) {
			c.Tools[1].Shared = b
		}),
		"spec.rateLimiting.tools[1].perUser.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) {
			c.Tools[1].PerUser = b
		}),
	} {
		for duration, unreadable := range map[string]bool{
			"0": false, "90s": false, "1.5h": false, "48h0m0s": false, "2d": true, "1 week": true, "1h 30m": true,
			// A bucket must have a period, and an empty one is none.
			"": path != "spec.proxyReadTimeout",
		} {
			server := &v1beta1.MCPServer{}
			set(&server.Spec, duration)
			want := [2]string{}
			if unreadable {
				want = [2]string{path, duration}
			}
			if field, value := takeover.Unreadable(server); want != [2]string{field, value} {
				t.Errorf("%s: %q: got %s %q", path, duration, field, value)
			}
		}
	}
}

// TestUnreadableWebhook: the same of what MCPServers refer to.
func TestUnreadableWebhook(t *testing.T) {
	for duration, unreadable := range map[string]bool{"10s": false, "1d": true, "10 seconds": true} {
		for _, kind := range []string{"mutating", "validating"} {
			config := &unstructured.Unstructured{Object: map[string]any{
				"kind": v1beta1.MCPWebhookConfigKind, "spec": map[string]any{kind: []any{map[string]any{}, map[string]any{"timeout": duration}}},
			}}
			want := [2]string{}
			if unreadable {
				want = [2]string{"spec." + kind + "[1].timeout", duration}
			}
			if field, value := takeover.UnreadableConfig(config); want != [2]string{field, value} {
				t.Errorf("%s: %q: got %s %q", kind, duration, field, value)
			}
		}
	}
}

// An interrupted handback that is run again ends as one that was not.
func TestHandbackInterrupted(t *testing.T) {
	const all = 100
	server, children := example(3, closedGate)
	wantServer, wantChildren := run(t, server, children, all)
	if left := takeover.Handback(wantServer, wantChildren); len(left) > 0 {
		t.Fatalf("there is more to do: %+v", left)
	}
	for steps := range 12 {
		t.Run(strconv.Itoa(steps), func(t *testing.T) {
			server, children := example(3, closedGate)
			server, children = run(t, server, children, steps)
			server, children = run(t, server, children, all)
			for i, object := range append(children, server) {
				want := append(wantChildren, wantServer)[i]
				if diff := cmp.Diff(plain(t, want), plain(t, object)); diff != "" {
					t.Errorf("%s (-at once +in two runs):\n%s", object.GetKind(), diff)
				}
			}
		})
	}
}

// plain is an object without the times of its managers' entries, which are those of the merge.
func plain(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	copied := object.DeepCopy()
	entries := copied.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	copied.SetManagedFields(entries)
	return copied.Object
}

// What is handed back is as ToolHive needs it, and others keep what is theirs.
func TestHandbackResult(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		gate, want string
	}{
		"Freehold's gate":        {3, closedGate, "3"},
		"never edited":           {1, closedGate, "1"},
		"ToolHive's gate":        {5, "3", "3"},
		"one that says nothing":  {4, "?", "4"},
		"of the same generation": {2, "2", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			server, children := handedBack(t, test.generation, test.gate)
			set, service := children[1], children[0]
			gate, _, _ := unstructured.NestedString(set.Object, "spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)
			if gate != test.want {
				t.Errorf("the gate is %s, want %s", gate, test.want)
			}
			if diff := cmp.Diff(map[string]string{"other": "stays"}, set.GetAnnotations()); diff != "" {
				t.Error(diff)
			}
			if owner := metav1.GetControllerOf(service); owner == nil || owner.UID != "set" || len(service.GetOwnerReferences()) != 1 {
				t.Errorf("the Service is owned by %+v", service.GetOwnerReferences())
			}
			conditions, _, _ := unstructured.NestedSlice(server.Object, "status", "conditions")
			if len(conditions) != 1 || len(server.GetFinalizers()) != 1 {
				t.Errorf("the MCPServer is %+v", server.Object)
			}
			for object, want := range map[*unstructured.Unstructured][]string{
				set:     {"somebody Apply", "toolhive-container-manager Apply"},
				service: {"toolhive-container-manager Apply"},
				server:  {"thv-operator Update", "thv-operator Update"},
			} {
				var holders []string
				for _, e := range object.GetManagedFields() {
					holders = append(holders, e.Manager+" "+string(e.Operation))
				}
				if diff := cmp.Diff(want, holders); diff != "" {
					t.Errorf("%s: %s", object.GetKind(), diff)
				}
			}
		})
	}
}

func handedBack(t *testing.T, generation int64, gate string) (*unstructured.Unstructured, []*unstructured.Unstructured) {
	t.Helper()
	server, children := example(generation, gate)
	return run(t, server, children, 100)
}

// A config that is handed back, in one run or two, keeps its finalizer and what ToolHive knows of its status, as ToolHive's.
func TestHandbackOfConfig(t *testing.T) {
	of := func(steps int, object *unstructured.Unstructured) *unstructured.Unstructured {
		for _, r := range takeover.HandbackAlone(object) {
			for n := range 3 {
				if steps--; steps < 0 {
					return object
				}
				object = step(t, &r, object, n)
			}
		}
		return object
	}
	config := func() *unstructured.Unstructured {
		return owned(map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.MCPToolConfigKind,
			"metadata": map[string]any{"name": "tools", "uid": "config", "finalizers": []any{v1beta1.FinalizerToolConfig}},
			"status": map[string]any{"configHash": "a", "conditions": []any{
				map[string]any{"type": "Valid", "status": "True"}, map[string]any{"type": "FieldsOwned", "status": "False"},
			}},
		},
			entry(managers.ConfigFinalizer, v1beta1.SchemeGroupVersion.String(), "", `{"f:metadata":{"f:finalizers":{"v:\"`+v1beta1.FinalizerToolConfig+`\"":{}}}}`),
			entry(managers.ConfigStatus, v1beta1.SchemeGroupVersion.String(), "status", `{"f:status":{"f:configHash":{},"f:conditions":{
				"k:{\"type\":\"Valid\"}":{".":{},"f:type":{},"f:status":{}},"k:{\"type\":\"FieldsOwned\"}":{".":{},"f:type":{},"f:status":{}}}}}`),
		)
	}
	const all = 100
	for steps := range 7 {
		got := of(all, of(steps, config()))
		if left := takeover.HandbackAlone(got); len(left) > 0 {
			t.Errorf("after %d steps and another run there is more to do: %+v", steps, left)
		}
		var holders []string
		for _, e := range got.GetManagedFields() {
			holders = append(holders, e.Manager+" "+string(e.Operation)+" "+e.Subresource)
		}
		if diff := cmp.Diff([]string{"thv-operator Update status", "thv-operator Update "}, holders); diff != "" {
			t.Errorf("after %d steps and another run: %s", steps, diff)
		}
		want := map[string]any{"configHash": "a", "conditions": []any{map[string]any{"type": "Valid", "status": "True"}}}
		if diff := cmp.Diff(want, got.Object["status"]); diff != "" || len(got.GetFinalizers()) != 1 {
			t.Errorf("after %d steps and another run: finalizers %v, status %s", steps, got.GetFinalizers(), diff)
		}
	}
}
