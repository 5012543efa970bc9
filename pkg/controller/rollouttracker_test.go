// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func TestOnDeleteIsWhatWasSeenLast(t *testing.T) {
	o := newRolloutTracker()
	set := func(namespace, name string, strategy appsv1.StatefulSetUpdateStrategyType) *workload.StatefulSet {
		return &workload.StatefulSet{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy},
		}
	}
	expect := func(why string, want ...types.NamespacedName) {
		t.Helper()
		if diff := cmp.Diff(want, o.onDeleteSets()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	x, y := cache.NewObjectName("b", "x"), cache.NewObjectName("a", "y")
	expect("nothing seen")
	o.note(x, set("b", "x", appsv1.OnDeleteStatefulSetStrategyType), rollout.State{}, rollout.State{})
	o.note(y, set("a", "y", appsv1.OnDeleteStatefulSetStrategyType), rollout.State{}, rollout.State{})
	expect("two", types.NamespacedName{Namespace: "a", Name: "y"}, types.NamespacedName{Namespace: "b", Name: "x"})
	o.note(y, set("a", "y", appsv1.RollingUpdateStatefulSetStrategyType), rollout.State{}, rollout.State{})
	expect("one rolls again", types.NamespacedName{Namespace: "b", Name: "x"})
	o.forget(x)
	expect("the other is gone")
}
