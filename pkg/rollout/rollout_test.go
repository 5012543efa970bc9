// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func TestAStatefulSetIsStuckProgressingOrComplete(t *testing.T) {
	for name, c := range map[string]struct {
		set    *workload.StatefulSet
		pods   []*workload.Pod
		want   string
		serves bool
		wake   time.Duration
	}{
		"there is none":              {nil, nil, "Progressing: NotMade", false, 0},
		"it was just made":           {set(func(s *appsv1.StatefulSet) { s.Status = appsv1.StatefulSetStatus{} }), nil, "Progressing: NotMade", false, 0},
		"not observed":               {set(func(s *appsv1.StatefulSet) { s.Generation = 4 }), nil, "Progressing: NotObserved", false, 0},
		"all are new":                {set(), []*workload.Pod{pod("a-0", "new"), pod("a-1", "new")}, "Complete", true, 0},
		"all are new, on delete":     {set(onDelete), []*workload.Pod{pod("a-0", "new"), pod("a-1", "new")}, "Complete", true, 0},
		"one is new":                 {set(), []*workload.Pod{pod("a-0", "old"), pod("a-1", "new")}, "Progressing: ReplacingPods", false, 0},
		"one waits to be deleted":    {set(onDelete), []*workload.Pod{pod("a-0", "old"), pod("a-1", "new")}, "Waiting: OnDelete (pod a-0)", false, 0},
		"both wait to be deleted":    {set(onDelete), []*workload.Pod{pod("a-1", "old"), pod("a-0", "old")}, "Waiting: OnDelete (pod a-0)", false, 0},
		"below the partition":        {set(partition(1)), []*workload.Pod{pod("a-0", "old"), pod("a-1", "new")}, "Waiting: Partition (pod a-0)", false, 0},
		"above the partition":        {set(partition(1)), []*workload.Pod{pod("a-0", "old"), pod("a-1", "old")}, "Progressing: ReplacingPods", false, 0},
		"one is scaled up":           {set(), []*workload.Pod{pod("a-0", "new"), pod("a-1", "new", unready(time.Second))}, "Complete", true, 0},
		"one was deleted by hand":    {set(), []*workload.Pod{pod("a-0", "new"), pod("a-1", "new", leaving)}, "Complete", true, 0},
		"the last one is on its way": {set(), []*workload.Pod{pod("a-0", "new", ending(time.Minute))}, "Progressing: ReplacingPods", false, time.Minute},
		"the last one does not go":   {set(), []*workload.Pod{pod("a-0", "new", leaving)}, "Progressing: CreatingPods (pod a-0)", false, 0},
		"none is created":            {set(), nil, "Progressing: CreatingPods", false, 0},
		"one is created, and not known yet": {
			set(func(s *appsv1.StatefulSet) { s.Status.Replicas = 2 }), []*workload.Pod{pod("a-1", "old")}, "Progressing: ReplacingPods", false, 0,
		},
		"a greater number cannot be created": {set(), []*workload.Pod{pod("a-0", "new")}, "Complete", true, 0},
		"none is ready":                      {set(), []*workload.Pod{pod("a-0", "new", unready(time.Minute)), pod("a-1", "new", unready(time.Minute))}, "Progressing: ReplacingPods", false, 9 * time.Minute},
		"there are to be none":               {set(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32) }), nil, "Waiting: ScaledToZero", false, 0},
		"the image cannot be pulled": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", waiting("ImagePullBackOff"))},
			"Stuck: ImagePullBackOff (pod a-1): container mcp", false, 0,
		},
		"a crash loop": {
			set(onDelete),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", waiting("CrashLoopBackOff"))},
			"Stuck: CrashLoopBackOff (pod a-1): container mcp", false, 0,
		},
		"between two crashes": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", crashed(2, time.Minute))},
			"Stuck: CrashLoopBackOff (pod a-1): container mcp ended with exit code 137, OOMKilled", false, 9 * time.Minute,
		},
		"two crashes long ago": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", crashedBefore(2, time.Minute, rollout.BackOffReset))},
			"Progressing: ReplacingPods", false, 9 * time.Minute,
		},
		"the first start after a crash": {
			set(), []*workload.Pod{pod("a-0", "old"), pod("a-1", "new", crashed(1, time.Minute))}, "Progressing: ReplacingPods", false, 9 * time.Minute,
		},
		"a crash after a long time": {
			set(), []*workload.Pod{pod("a-0", "old"), pod("a-1", "new", crashed(7, time.Hour))}, "Progressing: ReplacingPods", false, 9 * time.Minute,
		},
		"between two attempts to pull": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", waiting("ErrImagePull"))},
			"Stuck: ImagePullBackOff (pod a-1): container mcp", false, 0,
		},
		"a container that is being made": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", pending(time.Minute, "ContainerCreating"))},
			"Progressing: ReplacingPods", false, 9 * time.Minute,
		},
		"a container that is never made": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", pending(rollout.ReadyDeadline, "ContainerCreating"))},
			"Stuck: NotReady (pod a-1): it is not running yet: container mcp is in ContainerCreating", false, 0,
		},
		"a volume is missing, and there is an init container": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", pending(rollout.ReadyDeadline, "PodInitializing", initContainer(initWaits)))},
			"Stuck: NotReady (pod a-1): it is not running yet: init container init is in PodInitializing", false, 0,
		},
		"an init container that never ends": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", pending(rollout.ReadyDeadline, "PodInitializing", initContainer(initRuns)))},
			"Stuck: NotReady (pod a-1): it is not running yet: init container init has not ended", false, 0,
		},
		"an init container that has ended, and a sidecar": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", pending(rollout.ReadyDeadline, "PodInitializing",
				initContainer(initEnded), corev1.ContainerStatus{Name: "sidecar", Ready: true, State: initRuns}))},
			"Stuck: NotReady (pod a-1): it is not running yet: container mcp is in PodInitializing", false, 0,
		},
		"the node does not report on it yet": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unreported(time.Minute, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before,
			}))},
			"Progressing: ReplacingPods", false, 9 * time.Minute,
		},
		"no node reports on it": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unreported(rollout.ReadyDeadline))},
			"Stuck: NotReady (pod a-1): it is not running yet: no node has reported on it", false, 0,
		},
		"somebody holds back its scheduling": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unreported(time.Hour, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated, LastTransitionTime: before,
			}))},
			"Progressing: ReplacingPods", false, 0,
		},
		"it has ended, and another one will be made": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", ended(corev1.PodFailed)), pod("a-2", "new", ended(corev1.PodSucceeded))},
			"Progressing: ReplacingPods", false, 0,
		},
		"nowhere to run": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unschedulable)},
			"Stuck: Unschedulable (pod a-1)", false, 0,
		},
		"never ready": {
			set(),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unready(rollout.ReadyDeadline))},
			"Stuck: NotReady (pod a-1): it is running but not ready", false, 0,
		},
		"one of two crashes, and the other serves": {
			set(), []*workload.Pod{pod("a-0", "new"), pod("a-1", "new", waiting("CrashLoopBackOff"))}, "Complete", true, 0,
		},
		"one below the partition crashes, and nothing else happens before it is ready": {
			set(partition(1)),
			[]*workload.Pod{pod("a-0", "old", waiting("CrashLoopBackOff")), pod("a-1", "old")},
			"Stuck: CrashLoopBackOff (pod a-0): container mcp, below the partition; no other pod is replaced before it is ready", false, 0,
		},
		"one below the partition crashes, and all others are done": {
			set(partition(1)),
			[]*workload.Pod{pod("a-0", "old", waiting("CrashLoopBackOff")), pod("a-1", "new")},
			"Waiting: Partition (pod a-0)", false, 0,
		},
		"one below the partition crashes where the others do not wait for it": {
			set(partition(1), parallel),
			[]*workload.Pod{pod("a-0", "old", waiting("CrashLoopBackOff")), pod("a-1", "old")},
			"Progressing: ReplacingPods", false, 0,
		},
		"an old one crashes, and is to be deleted anyway": {
			set(onDelete), []*workload.Pod{pod("a-0", "old", waiting("CrashLoopBackOff")), pod("a-1", "new")}, "Waiting: OnDelete (pod a-0)", false, 0,
		},
		"the one that was deleted is not ready again": {
			set(onDelete),
			[]*workload.Pod{pod("a-0", "new", unready(time.Second)), pod("a-1", "old")},
			"Progressing: ReplacingPods", false, rollout.ReadyDeadline - time.Second,
		},
		"the one that was deleted is not there again": {set(onDelete), []*workload.Pod{pod("a-1", "old")}, "Progressing: CreatingPods", false, 0},
		"one above the partition is not ready": {
			set(partition(1), func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 3 }),
			[]*workload.Pod{pod("a-0", "old"), pod("a-1", "new", unready(time.Second)), pod("a-2", "new")},
			"Progressing: ReplacingPods", false, rollout.ReadyDeadline - time.Second,
		},
		"an old one crashes": {
			set(), []*workload.Pod{pod("a-0", "old", waiting("CrashLoopBackOff")), pod("a-1", "new")}, "Progressing: ReplacingPods", false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, wake := rollout.StatefulSet(c.set, c.pods, rollout.Driver{}, noon)
			check(t, state, wake, c.want, c.serves, c.wake)
			slices.Reverse(c.pods)
			if again, _ := rollout.StatefulSet(c.set, c.pods, rollout.Driver{}, noon); again != state {
				t.Errorf("with the pods in another order: %v", again)
			}
		})
	}
}

// Under OnDelete it is for the driver to go on; whoever pauses it is waited for.
func TestADrivenStatefulSetWaitsForItsDriver(t *testing.T) {
	pods := []*workload.Pod{pod("a-0", "old"), pod("a-1", "new")}
	for by, want := range map[rollout.Driver]string{
		{}:                           "Waiting: OnDelete (pod a-0)",
		{Driven: true}:               "Progressing: ReplacingPods",
		{Driven: true, Paused: true}: "Waiting: Paused (pod a-0)",
	} {
		state, _ := rollout.StatefulSet(set(onDelete), pods, by, noon)
		check(t, state, 0, want, false, 0)
	}
	state, _ := rollout.StatefulSet(set(), pods, rollout.Driver{Driven: true, Paused: true}, noon)
	check(t, state, 0, "Progressing: ReplacingPods", false, 0)
}

func TestADeploymentIsStuckProgressingOrComplete(t *testing.T) {
	deployment := func(updated, all, ready int32, changes ...func(*appsv1.Deployment)) *workload.Deployment {
		two := int32(2)
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &two},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 3, UpdatedReplicas: updated, Replicas: all, ReadyReplicas: ready},
		}
		for _, c := range changes {
			c(d)
		}
		return workload.DeploymentOf(d)
	}
	overdue := func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "too long",
			LastTransitionTime: before,
		}}
	}
	late := func(d *appsv1.Deployment) {
		conditions := d.Status.Conditions
		overdue(d)
		d.Status.Conditions = append(conditions, d.Status.Conditions...)
	}
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	refused := func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: before,
		})
	}
	for name, c := range map[string]struct {
		d      *workload.Deployment
		pods   []*workload.Pod
		want   string
		serves bool
		wake   time.Duration
	}{
		"there is none":                               {nil, nil, "Progressing: NotMade", false, 0},
		"not observed":                                {deployment(2, 2, 2, func(d *appsv1.Deployment) { d.Generation = 4 }), nil, "Progressing: NotObserved", false, 0},
		"all are new":                                 {deployment(2, 2, 2), nil, "Complete", true, 0},
		"one is being replaced":                       {deployment(1, 3, 2), nil, "Progressing: ReplacingPods", false, 0},
		"an old one is left":                          {deployment(2, 3, 3), nil, "Progressing: ReplacingPods", false, 0},
		"paused half way":                             {deployment(1, 3, 2, paused), nil, "Waiting: Paused", false, 0},
		"paused with nothing to do":                   {deployment(2, 2, 2, paused), nil, "Complete", true, 0},
		"it takes too long":                           {deployment(1, 3, 2, overdue), nil, "Stuck: ProgressDeadlineExceeded: too long", false, 0},
		"its pods are refused":                        {deployment(0, 0, 0, refused), nil, "Stuck: FailedCreate: exceeded quota", false, 0},
		"its pods are refused, and it takes too long": {deployment(0, 0, 0, refused, late), nil, "Stuck: FailedCreate: exceeded quota", false, 0},
		"its pods are refused, and it is late first":  {deployment(0, 0, 0, overdue, refused), nil, "Stuck: FailedCreate: exceeded quota", false, 0},
		"new pods are refused, and old ones crash": {
			deployment(0, 1, 0, refused), []*workload.Pod{pod("p", "", waiting("CrashLoopBackOff"))}, "Stuck: FailedCreate: exceeded quota", false, 0,
		},
		"a pod too many is refused": {deployment(1, 1, 1, refused), nil, "Complete", true, 0},
		"a crash loop": {
			deployment(1, 3, 2),
			[]*workload.Pod{pod("p", "", waiting("CrashLoopBackOff"))},
			"Stuck: CrashLoopBackOff (pod p): container mcp", false, 0,
		},
		"one of two crashes, and the other serves": {
			deployment(2, 2, 1), []*workload.Pod{pod("p", "", waiting("CrashLoopBackOff"))}, "Complete", true, 0,
		},
		"an old one ends": {
			deployment(2, 2, 2),
			[]*workload.Pod{pod("n", "", of("2", time.Minute)), pod("o", "", of("1", time.Hour), ending(20*time.Second)), pod("p", "", of("1", time.Hour), ending(9*time.Second))},
			"Progressing: ReplacingPods", false, 20 * time.Second,
		},
		"an old one has had its time": {
			deployment(2, 2, 2),
			[]*workload.Pod{pod("n", "", of("2", time.Minute)), pod("o", "", of("1", time.Hour), ending(-time.Second))},
			"Complete", true, 0,
		},
		"an old one is not known to end": {
			deployment(2, 2, 2),
			[]*workload.Pod{pod("n", "", of("2", time.Minute)), pod("o", "", of("1", time.Hour))},
			"Progressing: ReplacingPods", false, 0,
		},
		"an old one was evicted": {
			deployment(2, 2, 2),
			[]*workload.Pod{pod("n", "", of("2", time.Minute)), pod("o", "", of("1", time.Hour), evicted)},
			"Complete", true, 0,
		},
		"a new one ends": {
			deployment(2, 2, 2),
			[]*workload.Pod{pod("n", "", of("2", time.Minute)), pod("o", "", of("2", time.Hour), ending(20*time.Second))},
			"Complete", true, 0,
		},
		"one more is to come": {deployment(1, 1, 1), nil, "Complete", true, 0},
		"none yet":            {deployment(0, 0, 0), nil, "Progressing: ReplacingPods", false, 0},
		"an old one crashes": {
			deployment(1, 3, 2),
			[]*workload.Pod{pod("p", "", of("1", time.Hour), waiting("CrashLoopBackOff")), pod("o", "", of("2", time.Minute))},
			"Progressing: ReplacingPods", false, 0,
		},
		"a new one crashes that was made within a second of the old one": {
			deployment(1, 2, 1),
			[]*workload.Pod{pod("z", "", of("1", time.Hour)), pod("a", "", of("2", time.Hour), waiting("CrashLoopBackOff"))},
			"Stuck: CrashLoopBackOff (pod a): container mcp", false, 0,
		},
		"a new one starts": {deployment(1, 3, 2), []*workload.Pod{pod("p", "", unready(time.Minute))}, "Progressing: ReplacingPods", false, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			state, wake := rollout.Deployment(c.d, c.pods, noon)
			check(t, state, wake, c.want, c.serves, c.wake)
		})
	}
}

func check(t *testing.T, state rollout.State, wake time.Duration, want string, serves bool, wantWake time.Duration) {
	t.Helper()
	if got := fmt.Sprint(state); got != want || state.Serves() != serves || wake != wantWake {
		t.Errorf("%q, serves %t, wake after %v; want %q, %t, %v", got, state.Serves(), wake, want, serves, wantWake)
	}
	if (state.Phase == rollout.Stuck) != !state.Since.IsZero() {
		t.Errorf("%v since %v", state, state.Since)
	}
}

// Each pod counts until it is ready and of the present template, also while there is none in its place.
func TestAPodCountsAsOutdatedUntilItIsReadyAndNew(t *testing.T) {
	for name, c := range map[string]struct {
		set  *workload.StatefulSet
		pods []*workload.Pod
		want int
	}{
		"all are new":      {set(), []*workload.Pod{pod("web-0", "new"), pod("web-1", "new")}, 0},
		"one is old":       {set(), []*workload.Pod{pod("web-0", "old"), pod("web-1", "new")}, 1},
		"one is missing":   {set(), []*workload.Pod{pod("web-1", "new")}, 1},
		"one is not ready": {set(), []*workload.Pod{pod("web-0", "new"), pod("web-1", "new", unready(time.Minute))}, 1},
		"one is leaving":   {set(), []*workload.Pod{pod("web-0", "new"), pod("web-1", "new", leaving)}, 1},
		"one too many":     {set(), []*workload.Pod{pod("web-0", "new"), pod("web-1", "new"), pod("web-2", "old")}, 1},
		"none is there":    {set(), nil, 2},
		"not looked at yet": {
			set(func(s *appsv1.StatefulSet) { s.Generation++ }),
			[]*workload.Pod{pod("web-0", "new"), pod("web-1", "new")},
			2,
		},
	} {
		if got := rollout.Outdated(c.set, c.pods); got != c.want {
			t.Errorf("%s: %d are outdated, want %d", name, got, c.want)
		}
	}
}
