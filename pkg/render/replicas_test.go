// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// One rule decides about replicas, for the operator and for the plugin.
func TestOneRuleDecidesAboutReplicas(t *testing.T) {
	const none = -1 // no number
	for name, test := range map[string]struct {
		singlePod    bool
		wanted, live int32
		ours         bool

		number           int32
		capped, released bool
	}{
		"the spec says":                              {wanted: 3, live: 1, number: 3},
		"the spec says nothing":                      {wanted: none, live: 4, ours: true, number: none, released: true},
		"one pod, and there is one":                  {singlePod: true, wanted: none, live: 1, number: none, released: true},
		"one pod, and the number is ours":            {singlePod: true, wanted: none, live: 1, ours: true, number: 1},
		"one pod, and somebody wants more":           {singlePod: true, wanted: none, live: 2, number: 1, capped: true},
		"no pod, and somebody wants more":            {singlePod: true, wanted: 0, live: 2, number: 0, capped: true},
		"no pod, and there is one":                   {singlePod: true, wanted: 0, live: 1, number: 0},
		"no pod was asked for, and nothing any more": {singlePod: true, wanted: none, live: 0, ours: true, number: 0},
	} {
		t.Run(name, func(t *testing.T) {
			kind := managers.StatefulSet
			r := &Result{SinglePod: test.singlePod}
			if test.wanted != none {
				r.Intents = []Intent{{Writer: managers.BackendReplicas, Config: Replicas(kind, "web", "tools", &test.wanted)}}
			}
			got := r.Scale(managers.BackendReplicas, kind, "web", "tools", test.live, test.ours)
			if got.Capped != test.capped || got.Released != test.released || got.Capped && got.Most != test.number {
				t.Errorf("it is %+v", got)
			}
			if unnamed := got.Config.(*appsv1ac.StatefulSetApplyConfiguration).Spec == nil; unnamed != (test.number == none) {
				t.Errorf("it names no number: %t", unnamed)
			} else if !unnamed && *ReplicasOf(got.Config) != test.number {
				t.Errorf("the number is %d, want %d", *ReplicasOf(got.Config), test.number)
			}
		})
	}
}
