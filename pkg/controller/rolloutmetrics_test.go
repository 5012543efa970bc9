// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func TestOnDeleteIsWhatWasSeenLast(t *testing.T) {
	states := &serverStates{}
	publish := func(key cache.ObjectName, strategy appsv1.StatefulSetUpdateStrategyType) {
		set := &workload.StatefulSet{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy}}
		states.get(key).publish(set, rollout.State{}, rollout.State{})
	}
	expect := func(why string, want ...types.NamespacedName) {
		t.Helper()
		if diff := cmp.Diff(want, states.onDeleteSets()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	x, y := cache.NewObjectName("b", "x"), cache.NewObjectName("a", "y")
	expect("nothing seen")
	publish(x, appsv1.OnDeleteStatefulSetStrategyType)
	publish(y, appsv1.OnDeleteStatefulSetStrategyType)
	expect("two", types.NamespacedName{Namespace: "a", Name: "y"}, types.NamespacedName{Namespace: "b", Name: "x"})
	publish(y, appsv1.RollingUpdateStatefulSetStrategyType)
	expect("one rolls again", types.NamespacedName{Namespace: "b", Name: "x"})
	states.drop(x)
	expect("the other is gone")
}
