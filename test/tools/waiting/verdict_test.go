// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/test/harness"
)

// hold is a finalizer of another controller.
const hold = "example.com/hold"

// scene is a namespace with objects of one kind, and every version that they have had.
type scene struct {
	*harness.Namespace
	kind    schema.GroupVersionKind
	objects dynamic.ResourceInterface
	history *harness.History
}

func newScene(t *testing.T, kind schema.GroupVersionKind, resource string) *scene {
	t.Helper()
	ns := env.Namespace(t)
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	of := kind.GroupVersion().WithResource(resource)
	return &scene{ns, kind, client.Resource(of).Namespace(ns.Name), ns.Record(t, of)}
}

// create creates an object with a spec, given as JSON.
func (s *scene) create(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	object.SetGroupVersionKind(s.kind)
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	made, err := s.objects.Create(t.Context(), object, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// patch merges into an object as a user does. The answer is the object as it is before the operator has seen the change.
func (s *scene) patch(t *testing.T, name, patch string) *unstructured.Unstructured {
	t.Helper()
	live, err := s.objects.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// judge returns what kstatus says of an object. Argo CD has to agree.
func judge(t *testing.T, live *unstructured.Unstructured) *status.Result {
	t.Helper()
	verdict, err := status.Compute(live)
	if err != nil {
		t.Fatal(err)
	}
	mustAgree(t, live, verdict)
	return verdict
}

// must fails the test unless kstatus says so of an object.
func must(t *testing.T, when string, live *unstructured.Unstructured, want status.Status) {
	t.Helper()
	if got := judge(t, live); got.Status != want {
		t.Errorf("%s it is %s (%s), want %s; status %v", when, got.Status, got.Message, want, live.Object["status"])
	}
}

// await waits until kstatus says so of an object, in these words.
func (s *scene) await(t *testing.T, when, name string, want status.Status, words ...string) (live *unstructured.Unstructured) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s it is %s", when, want), func(ctx context.Context) (err error) {
		if live, err = s.objects.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		got := judge(t, live)
		if got.Status != want || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(got.Message, word) }) {
			return fmt.Errorf("%s is %s (%s); status %v", name, got.Status, got.Message, live.Object["status"])
		}
		return nil
	})
	return live
}

// end deletes an object that another controller holds. It is Terminating for as long as that lasts.
func (s *scene) end(t *testing.T, name string) {
	t.Helper()
	s.patch(t, name, `{"metadata": {"finalizers": ["`+hold+`"]}}`)
	s.await(t, "held by a finalizer", name, status.CurrentStatus)
	if err := s.objects.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "nothing but the finalizer of another controller is left", func(ctx context.Context) error {
		live, err := s.objects.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		must(t, "being deleted", live, status.TerminatingStatus)
		if !slices.Equal(live.GetFinalizers(), []string{hold}) {
			return fmt.Errorf("it has the finalizers %v", live.GetFinalizers())
		}
		return nil
	})
	s.patch(t, name, `{"metadata": {"finalizers": null}}`)
	if _, err := s.objects.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

// believe fails the test for each version that kstatus took for done or failed while it was neither.
func (s *scene) believe(t *testing.T, isDone, hasFailed func(live *unstructured.Unstructured) bool) {
	t.Helper()
	counts := map[status.Status]int{}
	for _, version := range s.history.Complete(t) {
		if version.Deleted {
			continue
		}
		verdict := judge(t, version.Unstructured)
		counts[verdict.Status]++
		if verdict.Status == status.CurrentStatus && !isDone(version.Unstructured) || verdict.Status == status.FailedStatus && !hasFailed(version.Unstructured) {
			t.Errorf("%s was %s (%s) at generation %d with the status %v", version.GetName(), verdict.Status, verdict.Message,
				version.GetGeneration(), version.Object["status"])
		}
	}
	t.Log(counts)
}

// conditionIs reports whether a condition of the object's present generation has a value.
func conditionIs(live *unstructured.Unstructured, conditionType string, is metav1.ConditionStatus) bool {
	found := conditionOf(live, conditionType)
	return found != nil && found.Status == is && found.ObservedGeneration == live.GetGeneration()
}

// conditionOf returns a condition of an object; nil for none.
func conditionOf(live *unstructured.Unstructured, conditionType string) *metav1.Condition {
	var read struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	content, err := live.MarshalJSON()
	if err != nil || json.Unmarshal(content, &read) != nil {
		return nil
	}
	return meta.FindStatusCondition(read.Status.Conditions, conditionType)
}
