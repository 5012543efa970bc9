// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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

// TestPodsOfOthersThatGetRequestsAreTold has a neighbour run a pod with the labels of an MCPServer's pods. The condition ForeignPods and one
// event tell of it as long as the selector of the Service matches its labels.
func TestPodsOfOthersThatGetRequestsAreTold(t *testing.T) {
	t.Parallel()
	const name, neighbour = "web", "neighbour"
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer(name))
	ns.AwaitReady(t, name)
	ns.AwaitRest(t)
	proxies, err := env.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "app=mcpserver,toolhive-name=" + name})
	if err != nil || len(proxies.Items) != 1 {
		t.Fatalf("the proxies are %v, %v", proxies, err)
	}
	alike := proxies.Items[0].Labels
	delete(alike, "pod-template-hash") // The ReplicaSet would adopt it.
	if _, err := env.Core.CoreV1().Pods(ns.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: neighbour, Labels: alike},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "any", Image: harness.OtherImage}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	getsRequests := func() bool {
		t.Helper()
		service, err := env.Core.CoreV1().Services(ns.Name).Get(t.Context(), "mcp-"+name+"-proxy", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := env.Core.CoreV1().Pods(ns.Name).Get(t.Context(), neighbour, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
	}
	if !getsRequests() {
		t.Fatal("the Service does not select the pod")
	}
	told := harness.Expectation{
		Condition: v1beta1.ConditionForeignPods, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSelectedByService, Message: []string{": " + neighbour + "."},
	}
	ns.AwaitStatus(t, name, append([]harness.Expectation{told}, harness.Fine...)...)
	ns.AwaitOneWarningEach(t, map[string]harness.Expectation{name: told})
	ns.Quiet(t, ns.Mark(t), harness.Calm)

	if _, err := env.Core.CoreV1().Pods(ns.Name).Patch(t.Context(), neighbour, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"toolhive-name":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if getsRequests() {
		t.Fatal("the Service still selects the pod")
	}
	ns.AwaitServer(t, name, "tells of no pods of others", func(server *v1beta1.MCPServer) error {
		if c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionForeignPods); c != nil {
			return fmt.Errorf("%s is %s: %s", c.Type, c.Status, c.Message)
		}
		return nil
	})
}
