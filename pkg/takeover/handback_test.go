// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
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
		}, "labels": map[string]any{"app": "web", v1beta1.LabelAppManagedBy: v1beta1.AppManagedBy}},
		"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{v1beta1.AnnotationGeneration: gate},
		}}},
	},
		entry(managers.Backend, "apps/v1", "", `{"f:metadata":{"f:annotations":{"f:freehold.dev/source":{},"f:freehold.dev/references":{}},
			"f:labels":{"f:app":{},"f:`+v1beta1.LabelAppManagedBy+`":{}}},
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
		checkClaimed(t, r, config)
		if after, err = ownership.Merge(schema, nil, live, &unstructured.Unstructured{Object: config}, managers.Plugin, r.Subresource); err != nil {
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

// checkClaimed checks that the plugin applies no annotation that it may not own.
func checkClaimed(t *testing.T, r *takeover.Return, config map[string]any) {
	t.Helper()
	annotations, _, _ := unstructured.NestedMap(config, "metadata", "annotations")
	for key := range annotations {
		if !slices.ContainsFunc(managers.HandbackWriters(), func(w fieldmanager.Writer) bool {
			return w.Kind == r.Ref.Kind && w.Subresource == r.Subresource && w.Claim.Covers(fieldmanager.Path("metadata", "annotations", key))
		}) {
			t.Errorf("the annotation %s of a %s is none that the plugin may own", key, r.Ref.Kind.Kind)
		}
	}
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

func TestAnInterruptedHandbackEndsAsAWholeOne(t *testing.T) {
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
func TestWhatIsHandedBackIsAsToolHiveNeedsIt(t *testing.T) {
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
			if diff := cmp.Diff(map[string]string{"app": "web"}, set.GetLabels()); diff != "" {
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

// ToolHive's operator takes a request for a restart that Freehold has answered for answered, and one of its own for what it was. The proxy
// restarts anyway, and by its chart the operator may not delete the pods that an immediate restart deletes.
func TestAHandbackLeavesRestartsAnswered(t *testing.T) {
	const asked, earlier, later = "2026-01-02T03:04:05+02:00", "2026-01-01T00:00:00Z", "2026-01-02T01:04:06Z"
	of := func(annotations map[string]any) *unstructured.Unstructured {
		server, _ := example(3, closedGate)
		if len(annotations) > 0 {
			server.Object["metadata"].(map[string]any)["annotations"] = annotations
		}
		return server
	}
	for name, c := range map[string]struct{ asked, answered, want string }{
		"never asked":            {"", "", ""},
		"asked of Freehold":      {asked, "", asked},
		"asked of both":          {asked, earlier, asked},
		"answered by ToolHive":   {asked, asked, asked},
		"moved back":             {asked, later, later},
		"an answer of no time":   {asked, "noon", asked},
		"a request of no time":   {"noon", "", ""},
		"that, and one answered": {"noon", earlier, earlier},
	} {
		annotations := map[string]any{}
		for key, value := range map[string]string{v1beta1.AnnotationRestartedAt: c.asked, v1beta1.AnnotationLastProcessedRestart: c.answered} {
			if value != "" {
				annotations[key] = value
			}
		}
		for steps := range 7 {
			server, _ := run(t, of(annotations), nil, steps)
			server, _ = run(t, server, nil, 100)
			if got := server.GetAnnotations()[v1beta1.AnnotationLastProcessedRestart]; got != c.want {
				t.Errorf("%s, after %d steps and another run: %q is answered, want %q", name, steps, got, c.want)
			}
			owners := ownership.Owners(server, ".metadata.annotations."+v1beta1.AnnotationLastProcessedRestart)
			if c.want != c.answered && (len(owners) != 1 || owners[0].Manager != managers.ToolHiveOperator) {
				t.Errorf("%s, after %d steps and another run: it is owned by %v", name, steps, owners)
			}
		}
	}
}

// A config that is handed back, in one run or two, keeps its finalizer and what ToolHive knows of its status, as ToolHive's.
func TestAConfigThatIsHandedBackKeepsItsFinalizer(t *testing.T) {
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
