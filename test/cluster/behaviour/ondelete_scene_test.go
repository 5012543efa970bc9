// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	driven      = "driven"
	nextImage   = "example.com/mcp:next"
	strategyKey = ".spec.updateStrategy"
)

// drivenScene is an MCPServer with three backend pods.
type drivenScene struct {
	*harness.Namespace
}

func newDrivenScene(t *testing.T, annotations map[string]string) drivenScene {
	t.Helper()
	s := drivenScene{env.Namespace(t)}
	s.Create(t, harness.Server(driven, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 3), func(server *v1beta1.MCPServer) {
		server.Annotations = annotations
	}))
	return s
}

var onDelete = map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete"}

func (s drivenScene) annotate(t *testing.T, key, value string) {
	t.Helper()
	s.Edit(t, driven, func(server *v1beta1.MCPServer) {
		if server.Annotations == nil {
			server.Annotations = map[string]string{}
		}
		if server.Annotations[key] = value; value == "" {
			delete(server.Annotations, key)
		}
	})
}

func (s drivenScene) roll(t *testing.T, image string) {
	t.Helper()
	s.Edit(t, driven, func(server *v1beta1.MCPServer) { server.Spec.Image = image })
}

// pods are the UIDs of the backend's pods, by name.
func (s drivenScene) pods(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := env.Core.CoreV1().Pods(s.Name).List(t.Context(), metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(render.BackendSelector(driven)).String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]types.UID{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].UID
	}
	return found
}

// evicted are the names of the pods whose eviction by the operator was accepted since the mark, in their order.
func (s drivenScene) evicted(t *testing.T, since audit.Mark) []string {
	t.Helper()
	var names []string
	for _, e := range s.Writes(t, since) {
		if e.Resource != "pods" {
			continue
		}
		if e.Subresource != "eviction" {
			t.Errorf("not an eviction: %v", e)
		} else if e.Succeeded() {
			names = append(names, e.Name)
		}
	}
	return names
}

// inTurn is the order in which all pods are replaced.
var inTurn = []string{driven + "-2", driven + "-1", driven + "-0"}

// checkReplaced checks that every pod was replaced once, one after the other.
func (s drivenScene) checkReplaced(t *testing.T, since audit.Mark, before map[string]types.UID) {
	t.Helper()
	if diff := cmp.Diff(inTurn, s.evicted(t, since)); diff != "" {
		t.Errorf("evicted pods (-want +got):\n%s", diff)
	}
	for name, uid := range s.pods(t) {
		if before[name] == uid {
			t.Errorf("pod %s is the old one", name)
		}
	}
	s.CheckOwnership(t, driven)
}

// awaitHeld waits until the MCPServer tells what its rollout waits for.
func (s drivenScene) awaitHeld(t *testing.T, reason string, parts ...string) {
	t.Helper()
	s.AwaitServer(t, driven, "waits for "+reason, func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReconciling)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason ||
			slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Message, part) }) {
			return fmt.Errorf("the condition is %+v, want %q", c, parts)
		}
		if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			return fmt.Errorf("it is Ready")
		}
		return nil
	})
}

// neverTwoAtOnce watches, until the test ends, that at most one of three pods of the backend is missing or not ready at any
// time.
func (s drivenScene) neverTwoAtOnce(t *testing.T) {
	t.Helper()
	selector := labels.SelectorFromSet(render.BackendSelector(driven)).String()
	list, err := env.Core.CoreV1().Pods(s.Name).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = serves(&list.Items[i])
	}
	begin := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.LabelSelector = selector
		return env.Core.CoreV1().Pods(s.Name).Watch(ctx, options)
	}
	harness.Follow(t, list.ResourceVersion, begin, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Errorf("the watch ended with %v", event.Object)
			return
		}
		ready[pod.Name] = event.Type != watch.Deleted && serves(pod)
		count := 0
		for _, is := range ready {
			if is {
				count++
			}
		}
		if count < 2 {
			t.Errorf("%d of three pods are ready at version %s", count, pod.ResourceVersion)
		}
	})
}

func serves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (s drivenScene) awaitStrategy(t *testing.T, want string) {
	t.Helper()
	harness.Eventually(t, "the update strategy "+want, func(ctx context.Context) error {
		set, err := env.Core.AppsV1().StatefulSets(s.Name).Get(ctx, driven, metav1.GetOptions{})
		if err == nil && string(set.Spec.UpdateStrategy.Type) != want {
			err = fmt.Errorf("it is %s", set.Spec.UpdateStrategy.Type)
		}
		return err
	})
}
