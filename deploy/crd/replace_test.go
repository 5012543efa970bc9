// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/deploy/crd"
)

func TestReplaceTellsWhatItWouldTakeAway(t *testing.T) {
	type tree = map[string]any
	for name, c := range map[string]struct {
		change func(t *testing.T, definition *unstructured.Unstructured, spec tree)
		want   []string
	}{
		"the same": {change: func(*testing.T, *unstructured.Unstructured, tree) {}},
		"fields less": {change: func(_ *testing.T, _ *unstructured.Unstructured, spec tree) {
			delete(spec, "proxyReadTimeout")
			delete(spec["sessionStorage"].(tree)["properties"].(tree), "tls")
		}},
		"fields more": {
			change: func(_ *testing.T, _ *unstructured.Unstructured, spec tree) {
				spec["newer"] = tree{"type": "object", "properties": tree{"below": tree{"type": "string"}}}
				spec["sessionStorage"].(tree)["properties"].(tree)["sentinel"] = tree{"type": "string"}
				spec["env"].(tree)["items"].(tree)["properties"].(tree)["valueFrom"] = tree{"type": "object"}
			},
			want: []string{"spec.env[].valueFrom", "spec.newer", "spec.sessionStorage.sentinel"},
		},
		"below what keeps everything": {change: func(_ *testing.T, _ *unstructured.Unstructured, spec tree) {
			spec["podTemplateSpec"].(tree)["properties"] = tree{"spec": tree{"type": "object"}}
		}},
		"a version more": {
			change: func(t *testing.T, definition *unstructured.Unstructured, _ tree) {
				t.Helper()
				versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
				if err := unstructured.SetNestedSlice(definition.Object, append(versions, tree{"name": "v1"}), "spec", "versions"); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"version v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, definition := &unstructured.Unstructured{}, &unstructured.Unstructured{}
			for _, read := range []*unstructured.Unstructured{own, definition} {
				if err := yaml.Unmarshal([]byte(crd.MCPServers), &read.Object); err != nil {
					t.Fatal(err)
				}
			}
			versions := definition.Object["spec"].(tree)["versions"].([]any)
			schema := versions[len(versions)-1].(tree)["schema"].(tree)["openAPIV3Schema"].(tree)
			c.change(t, definition, schema["properties"].(tree)["spec"].(tree)["properties"].(tree))
			if diff := cmp.Diff(c.want, crd.Replace(definition, own).Narrowed); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

// Whose items of a list that gets other keys would belong to nobody.
func TestReplaceTellsWhichItemsWouldBelongToNobody(t *testing.T) {
	own, old := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	for _, read := range []*unstructured.Unstructured{own, old} {
		if err := yaml.Unmarshal([]byte(crd.MCPServers), &read.Object); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range old.Object["spec"].(map[string]any)["versions"].([]any) {
		schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		if err := unstructured.SetNestedStringSlice(schema, []string{"name"}, "properties", "spec", "properties", "secrets", "x-kubernetes-list-map-keys"); err != nil {
			t.Fatal(err)
		}
	}
	replacement := crd.Replace(old, own)
	if diff := cmp.Diff(crd.Replacement{Rekeyed: []string{"spec.secrets"}}, replacement); diff != "" {
		t.Fatalf("replacement (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		operation metav1.ManagedFieldsOperationType
		fields    string
		want      []string
	}{
		"applied":        {metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:secrets":{"k:{\"name\":\"s\"}":{".":{},"f:key":{}}}}}`, []string{"argocd"}},
		"updated":        {metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:secrets":{"k:{\"name\":\"s\"}":{".":{}}}}}`, nil},
		"something else": {metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:image":{},"f:env":{"k:{\"name\":\"s\"}":{".":{}}}}}`, nil},
		"unreadable":     {metav1.ManagedFieldsOperationApply, `{"f:spec":`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "argocd", Operation: c.operation, APIVersion: "toolhive.stacklok.dev/v1beta1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(c.fields),
			}}}
			if diff := cmp.Diff(c.want, replacement.Orphans(server)); diff != "" {
				t.Errorf("managers (-want +got):\n%s", diff)
			}
			if none := (crd.Replacement{}).Orphans(server); len(none) > 0 {
				t.Errorf("%v lose items although no list changes", none)
			}
		})
	}
}
