// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestNewerSchema runs the operator beside a CRD that has fields of which it does not know, and one of another type. An
// MCPServer that uses one of them keeps its last good state, and the others are not concerned.
func TestNewerSchema(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	own := harness.NewForTest(t)
	s := newStage(t, own)
	first := s.Operate(t)
	for _, name := range []string{"top", "deep", "odd", "same"} {
		s.Create(t, harness.HTTPServer(name))
	}
	for _, name := range []string{"top", "deep", "odd", "same"} {
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitSettled(t, name)
	}
	s.AwaitRest(t)
	// An API server goes on for a moment to serve running watches by the schema before.
	harness.Stop(t, first)
	good := s.ChildVersions(t)

	s.extendSchema(t, func(spec map[string]any) {
		spec["proxyWriteTimeout"] = map[string]any{"type": "string"}
		storage := spec["sessionStorage"].(map[string]any)["properties"].(map[string]any)
		storage["sentinel"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		spec["endpointPrefix"] = map[string]any{"x-kubernetes-int-or-string": true}
	})
	newImage := harness.Replace("/spec/image", harness.OtherImage)
	cases := map[string]struct {
		with, without []harness.Operation
		expect        harness.Expectation
	}{
		"top": {
			with:    []harness.Operation{newImage, harness.Add("/spec/proxyWriteTimeout", "1m")},
			without: []harness.Operation{{Op: "remove", Path: "/spec/proxyWriteTimeout"}},
			expect:  invalidSpec("UnknownField", `"spec.proxyWriteTimeout"`, "Upgrade Freehold", "remove the field"),
		},
		"deep": {
			with: []harness.Operation{newImage, harness.Add("/spec/sessionStorage", map[string]any{
				"provider": "redis", "address": "redis:6379", "sentinel": map[string]any{"master": "one"},
			})},
			without: []harness.Operation{{Op: "remove", Path: "/spec/sessionStorage/sentinel"}},
			expect:  invalidSpec("UnknownField", `"spec.sessionStorage.sentinel"`),
		},
		"odd": {
			with:    []harness.Operation{newImage, harness.Add("/spec/endpointPrefix", 5)},
			without: []harness.Operation{harness.Replace("/spec/endpointPrefix", "/five")},
			expect:  invalidSpec("MalformedSpec", "endpointPrefix is of type number, not string"),
		},
	}
	s.awaitKept(t, "top", cases["top"].with[1])
	second := s.Operate(t)
	for name, c := range cases {
		s.MustPatch(t, "kubectl", harness.ServerItself, name, c.with...)
	}
	expected := map[string]harness.Expectation{}
	for name, c := range cases {
		expected[name] = c.expect
		server := s.AwaitStatus(t, name, c.expect)
		if server.Status.Phase != v1beta1.PhaseFailed {
			t.Errorf("the phase of %s is %s, not Failed", name, server.Status.Phase)
		}
	}
	s.AwaitRest(t)
	s.AwaitOneWarningEach(t, expected)

	s.Edit(t, "same", repair)
	s.AwaitStatus(t, "same", harness.Fine...)
	s.AwaitImage(t, "same", harness.OtherImage)

	restarted := s.Mark(t)
	s.ReplaceOperator(t, second)
	s.AwaitRest(t)
	if writes := s.Writes(t, restarted); len(writes) > 0 {
		t.Errorf("after a restart there are %d writes", len(writes))
	}
	for name := range cases {
		if changed := good[name].Changed(s.ChildVersions(t)[name]); len(changed) > 0 {
			t.Errorf("these children of %s changed: %v", name, changed)
		}
	}

	for name, c := range cases {
		s.MustPatch(t, "kubectl", harness.ServerItself, name, c.without...)
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitImage(t, name, harness.OtherImage)
	}
	violations, _, err := own.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// extendSchema changes the properties of an MCPServer's spec in all versions of the CRD.
func (s *stage) extendSchema(t *testing.T, change func(spec map[string]any)) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	definition, err := definitions.Get(t.Context(), "mcpservers."+v1beta1.SchemeGroupVersion.Group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
		spec, _, err := unstructured.NestedMap(version.(map[string]any), path...)
		if err != nil {
			t.Fatal(err)
		}
		change(spec)
		if err := unstructured.SetNestedMap(version.(map[string]any), spec, path...); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Update(t.Context(), definition, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitKept waits until the API server keeps a field, instead of pruning it. Nothing is changed.
func (s *stage) awaitKept(t *testing.T, server string, operation harness.Operation) {
	t.Helper()
	body, err := json.Marshal([]harness.Operation{operation})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
	harness.Eventually(t, "the schema is served", func(ctx context.Context) error {
		patched, err := s.Objects(harness.ServerItself).Patch(ctx, server, types.JSONPatchType, body,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if _, kept, _ := unstructured.NestedFieldNoCopy(patched.Object, path...); !kept {
			return fmt.Errorf("%s is not kept", operation.Path)
		}
		return nil
	})
}
