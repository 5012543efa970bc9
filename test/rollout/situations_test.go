// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// situation is what happens to the backend's pods.
type situation struct {
	name string
	play func(*scene)
}

var situations = []situation{
	{"all goes well", func(s *scene) {
		s.change(image(second))
		s.strategy.meet(s)
		s.strategy.finish(s)
		s.rests(serves())
		s.checkRevisions()
	}},
	{"the image cannot be pulled", func(s *scene) {
		s.setBehaviour(harness.Backend, second, pullFails)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.await(stuckAt(pod, "ImagePullBackOff", "container mcp"))
		since := s.seen()
		for _, turn := range []podBehaviour{pullsLater, pullFails, pullsLater} {
			s.setBehaviour(harness.Backend, second, turn)
			s.awaitPod(harness.Backend, second, "waits "+string(turn), waitsBecause(turn))
		}
		s.rests(stuckAt(pod, "ImagePullBackOff"))
		s.neverBut(since, stuckAt(pod, "ImagePullBackOff"))
		s.setBehaviour(harness.Backend, second, ready)
		s.strategy.finish(s)
		s.await(serves())
	}},
	{"a crash loop", func(s *scene) {
		s.setBehaviour(harness.Backend, second, crashes)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.await(stuckAt(pod, "CrashLoopBackOff", "container mcp"))
		since := s.seen()
		// It is tried again now and then, and runs for a moment.
		s.setBehaviour(harness.Backend, second, runsAgain)
		s.awaitPod(harness.Backend, second, "runs again", func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
		})
		s.rests(stuckAt(pod, "CrashLoopBackOff"))
		s.setBehaviour(harness.Backend, second, crashes)
		s.awaitPod(harness.Backend, second, "waits again", waitsBecause(crashes))
		s.rests(stuckAt(pod, "CrashLoopBackOff"))
		s.neverBut(since, stuckAt(pod, "CrashLoopBackOff"))
		s.setBehaviour(harness.Backend, second, ready)
		s.strategy.finish(s)
		s.await(serves())
	}},
	{"nowhere to run", func(s *scene) {
		s.change(image(second), s.onlyWhereAllowed)
		pod := s.strategy.meet(s)
		s.rests(stuckAt(pod, "Unschedulable"))
		s.allowNode()
		s.strategy.finish(s)
		s.await(serves())
	}},
	{"never ready", func(s *scene) {
		s.setBehaviour(harness.Backend, second, neverReady)
		since := s.seen() // Before the change: what follows it may be seen at once.
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.rests(stuckAt(pod, "NotReady"))
		// For ten minutes, of which most had passed, there was hope.
		s.hasBeen(since, goesOn())
		s.setBehaviour(harness.Backend, second, ready)
		s.strategy.finish(s)
		s.await(serves())
	}},
	{"a pod is deleted by hand", func(s *scene) {
		since := s.seen()
		s.setBehaviourOfNew(harness.Backend, first, creating)
		s.deletePod(podZero)
		s.awaitPod(harness.Backend, first, "is being made", isPod(podZero, waitsOnNode))
		s.rests(serves())
		s.setBehaviour(harness.Backend, first, ready)
		s.awaitPod(harness.Backend, first, "is back", isPod(podZero, isReady))
		s.await(serves())
		s.neverBut(since, serves())

		// And again while it is the one that a rollout waits for.
		s.setBehaviour(harness.Backend, second, creating)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.awaitPod(harness.Backend, second, "is being made", isPod(pod, waitsOnNode))
		s.await(goesOn())
		s.deletePod(pod)
		s.awaitPod(harness.Backend, second, "is being made again", isPod(pod, waitsOnNode))
		s.await(goesOn())
		s.setBehaviour(harness.Backend, second, ready)
		s.strategy.finish(s)
		s.await(serves())
	}},
	{"held up half way", func(s *scene) {
		s.setBehaviour(harness.Backend, second, creating)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.awaitPod(harness.Backend, second, "is being made", isPod(pod, waitsOnNode))
		s.await(goesOn())
		s.strategy.repartition(s)
		s.await(serves())
	}},
	{"scaled during the rollout", func(s *scene) {
		s.setBehaviour(harness.Backend, second, creating)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.awaitPod(harness.Backend, second, "is being made", isPod(pod, waitsOnNode))
		s.await(goesOn())
		s.change(harness.Replicas(1, 3))
		s.await(goesOn())
		s.setBehaviour(harness.Backend, second, ready)
		s.strategy.finish(s)
		s.awaitPod(harness.Backend, second, "is one more", isPod(name+"-2", isReady))
		s.await(serves())
		s.checkRevisions()
	}},
	{"put right by another image", func(s *scene) {
		s.setBehaviour(harness.Backend, second, pullsLater)
		s.change(image(second))
		pod := s.strategy.meet(s)
		s.await(stuckAt(pod, "ImagePullBackOff"))
		// A StatefulSet's controller waits for a pod that it has begun with to be ready, come what may. So somebody else
		// has to delete it: under OnDelete the user, who is asked to, and else the operator.
		s.change(image(third))
		s.strategy.meet(s)
		s.strategy.finish(s)
		s.await(serves())
	}},
}

// partitionSituations are for a partition alone.
var partitionSituations = []situation{
	{"a crash loop below the partition", func(s *scene) {
		zero := s.awaitPod(harness.Backend, first, "is ready", isPod(podZero, isReady))
		s.site.kubelet.setBehaviourOfPod(zero, crashes)
		s.awaitPod(harness.Backend, first, "has crashed", isPod(podZero, waitsBecause(crashes)))
		s.change(image(second))
		// The controller replaces no other pod before this one is ready, which keeps its revision.
		s.rests(stuckAt(podZero, "CrashLoopBackOff", "below the partition"))
		s.site.kubelet.setBehaviourOfPod(zero, ready)
		s.strategy.finish(s)
		s.await(serves())
	}},
}

// waitsBecause accepts a pod whose container waits for this reason.
func waitsBecause(reason podBehaviour) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == string(reason)
	}
}

// isPod accepts a pod with a name.
func isPod(name string, accept func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Name == name && accept(pod) }
}

// label is the one that a node has where pods of the scene may run that care.
func (s *scene) label() string { return "example.com/" + s.Name }

// allowNode gives the node the label.
func (s *scene) allowNode() {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{s.label(): "yes"}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Core.CoreV1().Nodes().Patch(s.t.Context(), nodeName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// onlyWhereAllowed has backend pods run on nodes with the label alone.
func (s *scene) onlyWhereAllowed(server *v1beta1.MCPServer) {
	harness.PodTemplate(fmt.Sprintf(`{"spec":{"nodeSelector":{%q:"yes"}}}`, s.label()))(server)
}
