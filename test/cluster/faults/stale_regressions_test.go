// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/test/harness"
)

func TestReplicasAreGivenUpUnlessTheNextSpecNamesThem(t *testing.T) {
	two, three := int32(2), int32(3)
	at := func(generation int64) string { return apply.Source{UID: "a", Generation: generation}.String() }
	spec := func(replicas *int32) v1beta1.MCPServerSpec {
		return v1beta1.MCPServerSpec{Image: "i", Env: []v1beta1.EnvVar{{Name: editedVariable, Value: "0"}}, BackendReplicas: replicas}
	}
	for name, c := range map[string]struct {
		then *int32
		want int
	}{"named again": {&two, 0}, "another number": {&three, 1}, "still not named": {nil, 1}} {
		t.Run(name, func(t *testing.T) {
			backend := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
				Name: "web", UID: "b", Annotations: map[string]string{v1beta1.AnnotationSource: at(7), v1beta1.AnnotationReplicasSource: at(7)},
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: harness.FormOf(harness.Backend).Replicas, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
				}},
			}}
			backend.Spec.Replicas = &two
			backend.Spec.Template.Spec.Containers = []corev1.Container{{Image: "i", Env: []corev1.EnvVar{{Name: editedVariable, Value: "0"}}}}
			known := specs{at(6): spec(&two), at(7): spec(nil), at(8): spec(c.then)}
			found := regressions([]version{{harness.Backend, watch.Modified, backend}}, known)
			if len(found) != c.want {
				t.Errorf("found %q, want %d", found, c.want)
			}
		})
	}
}
