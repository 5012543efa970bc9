// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	autoscalingv1ac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
)

const three = `"metadata":{"name":"web"},"spec":{"replicas":3}`

// A client of the subresource scale owns the number that it writes, if somebody owned it before. 0 takes it from everyone.
func TestAScaleTakesTheNumberFromItsOwners(t *testing.T) {
	for name, test := range map[string]struct {
		owned    bool
		replicas int32
		want     []string
	}{
		"another number":         {true, 5, []string{"client/scale"}},
		"the same number":        {true, 3, []string{"a"}},
		"none":                   {true, 0, nil},
		"a number without owner": {false, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			must(f.apply("a", three))(t)
			if !test.owned {
				must(f.deployments.UpdateScale(t.Context(), "web", scaleTo(0), metav1.UpdateOptions{}))(t)
			}
			scaled := must(f.deployments.UpdateScale(t.Context(), "web", scaleTo(test.replicas), metav1.UpdateOptions{}))(t)
			live := must(f.deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t)
			if *live.Spec.Replicas != test.replicas || scaled.Spec.Replicas != test.replicas || scaled.ResourceVersion != live.ResourceVersion {
				t.Errorf("%d replicas, the answer is %+v", *live.Spec.Replicas, scaled)
			}
			if !slices.Equal(managers(live), test.want) {
				t.Errorf("managers %v, want %v", managers(live), test.want)
			}
		})
	}
}

func TestAnApplyToScaleIsAConflictWithTheOwnerOfTheNumber(t *testing.T) {
	f := newFixture(t)
	must(f.apply("a", three))(t)
	five := autoscalingv1ac.Scale().WithSpec(autoscalingv1ac.ScaleSpec().WithReplicas(5))
	_, err := f.deployments.ApplyScale(t.Context(), "web", five, metav1.ApplyOptions{FieldManager: "scaler"})
	expectCode(t, err, 409, "another number")
	if fields := contested(err); !slices.Equal(fields, []string{".spec.replicas"}) {
		t.Errorf("contested fields %v", fields)
	}
	must(f.deployments.ApplyScale(t.Context(), "web", five, metav1.ApplyOptions{FieldManager: "scaler", Force: true}))(t)
	if live := must(f.deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t); !slices.Equal(managers(live), []string{"scaler/scale"}) {
		t.Errorf("managers %v", managers(live))
	}
	_, err = f.deployments.GetScale(t.Context(), "none", metav1.GetOptions{})
	expectCode(t, err, 404, "nothing to scale")
}

func scaleTo(replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
}
