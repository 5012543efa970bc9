// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func TestReplaceNamesThePodThatIsNext(t *testing.T) {
	three := func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) }
	old := func(name string, changes ...change) *workload.Pod { return pod(name, "old", changes...) }
	fresh := func(name string, changes ...change) *workload.Pod { return pod(name, "new", changes...) }
	pods := func(of ...*workload.Pod) []*workload.Pod { return of }
	for name, c := range map[string]struct {
		set    *workload.StatefulSet
		pods   []*workload.Pod
		driven bool
		want   string
		wake   time.Duration
	}{
		"there is no StatefulSet":                  {nil, nil, true, "", 0},
		"it is not observed":                       {set(onDelete, func(s *appsv1.StatefulSet) { s.Generation = 4 }), pods(old("a-0"), old("a-1")), true, "", 0},
		"the highest ordinal is the first":         {set(onDelete, three), pods(old("a-0"), old("a-2"), old("a-1")), true, "a-2", 0},
		"10 comes after 9":                         {set(onDelete), pods(old("a-9"), old("a-10")), true, "a-10", 0},
		"nobody drives":                            {set(onDelete), pods(old("a-0"), old("a-1")), false, "", 0},
		"one that is not ready comes before":       {set(onDelete), pods(old("a-0", unready(0)), old("a-1")), true, "a-0", 0},
		"the next, when the last is ready":         {set(onDelete), pods(old("a-0"), fresh("a-1")), true, "a-0", 0},
		"not while the last one is not ready":      {set(onDelete), pods(old("a-0"), fresh("a-1", unready(0))), true, "", 0},
		"not while the last one fails":             {set(onDelete), pods(old("a-0", unready(0)), fresh("a-1", waiting("CrashLoopBackOff"))), true, "", 0},
		"not while one is on its way out":          {set(onDelete), pods(old("a-0"), old("a-1", leaving)), true, "", 0},
		"not while one is missing":                 {set(onDelete), pods(old("a-0")), true, "", 0},
		"the one that failed, with a new template": {set(onDelete), pods(old("a-0"), old("a-1", waiting("ImagePullBackOff"))), true, "a-1", 0},
		"all are new":                              {set(onDelete), pods(fresh("a-0"), fresh("a-1")), true, "", 0},

		"Kubernetes drives":                      {set(), pods(old("a-0"), fresh("a-1", unready(0))), false, "", 0},
		"an old one cannot start":                {set(), pods(old("a-0", waiting("ImagePullBackOff")), old("a-1")), false, "a-0", 0},
		"two old ones cannot":                    {set(), pods(old("a-1", unschedulable), old("a-0", waiting("CrashLoopBackOff"))), false, "a-1", 0},
		"an old one has missed a probe":          {set(), pods(old("a-0", unready(10*time.Second)), old("a-1")), false, "", 20 * time.Second},
		"an old one crashed long ago":            {set(), pods(old("a-0", crashedBefore(2, time.Minute, time.Hour), unready(10*time.Second)), old("a-1")), false, "", 20 * time.Second},
		"an old one crashes all the time":        {set(), pods(old("a-0", crashed(2, time.Minute), unready(10*time.Second)), old("a-1")), false, "a-0", 0},
		"an old one has not been ready for long": {set(), pods(old("a-0", unready(30*time.Second)), old("a-1")), false, "a-0", 0},
		"an old one is on its way out":           {set(), pods(old("a-0", unready(time.Hour), leaving), old("a-1")), false, "", 0},
		"it is to stay old":                      {set(partition(1)), pods(old("a-0", waiting("ImagePullBackOff")), fresh("a-1")), false, "", 0},
		"a new one cannot start":                 {set(), pods(old("a-0"), fresh("a-1", waiting("ImagePullBackOff"))), false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			next, wake := rollout.Replace(c.set, c.pods, c.driven, noon)
			got := ""
			if next != nil {
				got = next.Name
			}
			if got != c.want || wake != c.wake {
				t.Errorf("%q, wake after %v; want %q, %v", got, wake, c.want, c.wake)
			}
			slices.Reverse(c.pods)
			if again, _ := rollout.Replace(c.set, c.pods, c.driven, noon); again != next {
				t.Errorf("with the pods in another order: %v", again)
			}
		})
	}
}
