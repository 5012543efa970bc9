// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestPodsOfOthers makes copies of a backend's pod that keep its labels, as kubectl debug --copy-to --keep-labels does, and that
// never become ready. They have no controller, so they change no condition and are not evicted; a rollout of the backend
// does not wait for them.
func TestPodsOfOthers(t *testing.T) {
	t.Parallel()
	const name = "web"
	s := newStage(t, env)
	s.Operate(t)
	s.Create(t, httpServer(name))
	s.AwaitReady(t, name)
	s.settle(t)
	original, err := env.Core.CoreV1().Pods(s.Name).Get(t.Context(), name+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copies := []string{name + "-0-debug", name + "-copy-1"}
	mark := s.Mark(t)
	for _, copied := range copies {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: copied, Labels: original.Labels, Annotations: original.Annotations},
			Spec:       corev1.PodSpec{Containers: original.Spec.Containers, NodeSelector: map[string]string{"example.com/none": "here"}},
		}
		pod.Spec.Containers[0].VolumeMounts = nil
		if _, err := env.Core.CoreV1().Pods(s.Name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.settle(t)
	if writes := s.Writes(t, mark); len(writes) > 0 {
		t.Errorf("copies of a pod cost writes: %v", writes)
	}
	s.await(t, name, fine...)

	mark = s.Mark(t)
	s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.Image = repairedImage })
	s.AwaitServer(t, name, "is rolled out", func(server *v1beta1.MCPServer) error {
		return expectation{condition: v1beta1.ConditionRolledOut, status: metav1.ConditionTrue, reason: "RolledOut"}.missing(server)
	})
	s.settle(t)
	for _, e := range s.Writes(t, mark) {
		if e.Resource == "pods" {
			t.Errorf("a pod of somebody else was to go: %s", e)
		}
	}
	for _, copied := range copies {
		pod, err := env.Core.CoreV1().Pods(s.Name).Get(t.Context(), copied, metav1.GetOptions{})
		if err != nil || pod.DeletionTimestamp != nil {
			t.Errorf("%s: %v, %v", copied, pod, err)
		}
	}
	server := s.await(t, name, fine...)
	if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionStalled) {
		t.Errorf("it is stalled by pods of somebody else: %+v", server.Status.Conditions)
	}
	s.Quiet(t, s.Mark(t), harness.Calm)
}
