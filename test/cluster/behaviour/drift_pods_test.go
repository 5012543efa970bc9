// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestPodsOfOthersDecideNothing makes copies of a backend's pod that keep its labels, as kubectl debug --copy-to --keep-labels does, and
// that never become ready. They have no controller, so they change no condition and are not evicted; a rollout of the backend does not wait
// for them.
func TestPodsOfOthersDecideNothing(t *testing.T) {
	t.Parallel()
	const name = "web"
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer(name))
	ns.AwaitReady(t, name)
	ns.AwaitRest(t)
	original, err := env.Core.CoreV1().Pods(ns.Name).Get(t.Context(), name+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copies := []string{name + "-0-debug", name + "-copy-1"}
	mark := ns.Mark(t)
	for _, copied := range copies {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: copied, Labels: original.Labels, Annotations: original.Annotations},
			Spec:       corev1.PodSpec{Containers: original.Spec.Containers, NodeSelector: map[string]string{"example.com/none": "here"}},
		}
		pod.Spec.Containers[0].VolumeMounts = nil
		if _, err := env.Core.CoreV1().Pods(ns.Name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ns.AwaitRest(t)
	if writes := ns.Writes(t, mark); len(writes) > 0 {
		t.Errorf("copies of a pod cost writes: %v", writes)
	}
	ns.AwaitStatus(t, name, harness.Fine...)

	mark = ns.Mark(t)
	ns.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	ns.AwaitServer(t, name, "is rolled out", func(server *v1beta1.MCPServer) error {
		return harness.Expectation{Condition: v1beta1.ConditionRolledOut, Status: metav1.ConditionTrue, Reason: "RolledOut"}.Missing(server)
	})
	ns.AwaitRest(t)
	for _, e := range ns.Writes(t, mark) {
		if e.Resource == "pods" {
			t.Errorf("a pod of somebody else was to go: %s", e)
		}
	}
	for _, copied := range copies {
		pod, err := env.Core.CoreV1().Pods(ns.Name).Get(t.Context(), copied, metav1.GetOptions{})
		if err != nil || pod.DeletionTimestamp != nil {
			t.Errorf("%s: %v, %v", copied, pod, err)
		}
	}
	server := ns.AwaitStatus(t, name, harness.Fine...)
	if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionStalled) {
		t.Errorf("it is stalled by pods of somebody else: %+v", server.Status.Conditions)
	}
	ns.Quiet(t, ns.Mark(t), harness.Calm)
}
