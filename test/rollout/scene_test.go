// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// name of the MCPServer that each scene has, and of both its workloads.
const name = "mcp"

// The images that an MCPServer has one after the other.
const (
	first  = "example.com/mcp:1"
	second = "example.com/mcp:2"
	third  = "example.com/mcp:3"
)

// The backend pods of an MCPServer.
const (
	podZero = name + "-0"
	podOne  = name + "-1"
)

// scene is an MCPServer with two backend pods in a namespace of its own, and what a test knows of it.
type scene struct {
	*harness.Namespace
	t        *testing.T
	site     *site
	strategy strategy
	// generation of the last edit.
	generation int64

	mu      sync.Mutex
	history []*v1beta1.MCPServer
}

// newScene makes an MCPServer and waits until it serves, and then has its backend follow the strategy.
func newScene(t *testing.T, in *site, by strategy) *scene {
	t.Helper()
	s := &scene{Namespace: in.Namespace(t), t: t, site: in, strategy: by}
	server := harness.Server(name, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 2))
	server.Spec.Image = first
	created := s.Create(t, server)
	s.generation = created.Generation
	s.witness(created.ResourceVersion)
	s.AwaitSettled(t, name)
	s.await(serves())
	if by.begin != nil {
		by.begin(s)
	}
	return s
}

// witness holds every status that the MCPServer gets against what is true at that moment: when it says that it is Ready
// at its generation, the pods that serve are those of its spec, and no others.
func (s *scene) witness(since string) {
	s.t.Helper()
	begin := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		return s.Servers.Watch(ctx, options)
	}
	ctx := context.WithoutCancel(s.t.Context())
	harness.Follow(s.t, since, begin, func(event watch.Event) {
		server, ok := event.Object.(*v1beta1.MCPServer)
		if !ok {
			s.t.Errorf("the witness saw %+v", event.Object)
			return
		}
		s.mu.Lock()
		s.history = append(s.history, server)
		s.mu.Unlock()
		if !kubectlWaits(server) {
			return
		}
		if err := s.servesJust(ctx, server); err != nil {
			s.t.Errorf("kubectl wait --for=condition=Ready returns for generation %d, and %v", server.Generation, err)
		}
	})
}

// servesJust tells whether pods of the image are ready in both tiers, and none of another image is there.
func (s *scene) servesJust(ctx context.Context, server *v1beta1.MCPServer) (problem error) {
	for began := time.Now(); ; {
		wrong, missing, err := s.servingPods(ctx, server.Spec.Image)
		if err != nil || wrong == nil && missing == nil {
			return err
		}
		// What was said is about what was there then; somebody may have gone on meanwhile.
		now, err := s.Servers.Get(ctx, name, metav1.GetOptions{})
		if err != nil || now.Generation != server.Generation {
			return err
		}
		// A pod of an earlier image cannot come back. One that is ready can go, and the status tells a moment later.
		if wrong != nil || harness.AtPace(began, time.Since(began)) > patience {
			return errors.Join(wrong, missing)
		}
		if !kubectlWaits(now) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(harness.Poll):
		}
	}
}

// patience is how long a status may be late that a pod is gone.
const patience = 10 * time.Second

// servingPods tells which pods have another image, and whether a tier has no ready pod with the image.
func (s *scene) servingPods(ctx context.Context, image string) (wrong, missing, err error) {
	for _, tier := range []harness.Component{harness.Backend, harness.Proxy} {
		pods, err := tierPods(ctx, s.Namespace, tier)
		if err != nil {
			return nil, nil, err
		}
		serving := 0
		for i := range pods {
			of, err := subjectOf(&pods[i])
			switch {
			case err != nil:
				return nil, nil, err
			case pods[i].DeletionTimestamp != nil:
			case of.image != image:
				wrong = errors.Join(wrong, fmt.Errorf("pod %s has image %s", pods[i].Name, of.image))
			case isReady(&pods[i]):
				serving++
			}
		}
		if serving == 0 {
			missing = errors.Join(missing, fmt.Errorf("no pod of the %s is ready with image %s", tier, image))
		}
	}
	return wrong, missing, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// await waits until the MCPServer is judged so at its newest generation.
func (s *scene) await(v verdict) {
	s.t.Helper()
	s.AwaitServer(s.t, name, v.String(), func(server *v1beta1.MCPServer) error { return v.of(server, s.generation) })
}

// seen is how many statuses the witness has seen.
func (s *scene) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.history)
}

// hasBeen waits until a status since a number of them has been seen that was judged so.
func (s *scene) hasBeen(since int, v verdict) {
	s.t.Helper()
	harness.Eventually(s.t, "a status was seen that "+v.String(), func(context.Context) (err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		err = fmt.Errorf("no status since")
		for _, server := range s.history[since:] {
			if err = v.of(server, s.generation); err == nil {
				return nil
			}
		}
		return err
	})
}

// neverBut fails the test when a status since a number of them was judged otherwise.
func (s *scene) neverBut(since int, v verdict) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.history[since:] {
		if err := v.of(server, s.generation); err != nil {
			s.t.Errorf("not every status %s: %v", v, err)
		}
	}
}

// change edits the spec.
func (s *scene) change(changes ...harness.Change) {
	s.t.Helper()
	edited := s.Edit(s.t, name, func(server *v1beta1.MCPServer) {
		for _, change := range changes {
			change(server)
		}
	})
	s.generation = edited.Generation
}

// image is the change of the image.
func image(to string) harness.Change { return func(s *v1beta1.MCPServer) { s.Spec.Image = to } }

// setBehaviour sets how the pods of a tier with an image behave.
func (s *scene) setBehaviour(tier harness.Component, image string, behaviour podBehaviour) {
	s.site.kubelet.setBehaviour(subject{s.Name, tier, image}, behaviour)
}

// awaitPod waits until a tier has a pod with the image that the check, if any, accepts.
func (s *scene) awaitPod(tier harness.Component, image, what string, accept func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	var found *corev1.Pod
	harness.Eventually(s.t, fmt.Sprintf("a pod of the %s with image %s %s", tier, image, what), func(ctx context.Context) error {
		pods, err := tierPods(ctx, s.Namespace, tier)
		if err != nil {
			return err
		}
		var names []string
		for i := range pods {
			of, err := subjectOf(&pods[i])
			if err == nil && of.image == image && pods[i].DeletionTimestamp == nil && accept(&pods[i]) {
				found = &pods[i]
				return nil
			}
			names = append(names, fmt.Sprintf("%s %s %s", pods[i].Name, of.image, pods[i].Status.Phase))
		}
		return fmt.Errorf("there are %v", names)
	})
	return found
}

func anyPod(*corev1.Pod) bool { return true }

// waitsOnNode accepts a pod whose containers the kubelet has said something of.
func waitsOnNode(pod *corev1.Pod) bool { return len(pod.Status.ContainerStatuses) > 0 && !isReady(pod) }

// deletePod deletes a pod by hand, and returns when it is gone.
func (s *scene) deletePod(pod string) {
	s.t.Helper()
	pods := s.Core.CoreV1().Pods(s.Name)
	old, err := pods.Get(s.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := pods.Delete(s.t.Context(), pod, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	harness.Eventually(s.t, "another pod in place of "+pod, func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].UID == old.UID {
				return fmt.Errorf("it is there, deleted at %v", list.Items[i].DeletionTimestamp)
			}
		}
		return nil
	})
}

// setBehaviourOfNew sets how the future pods of a tier with an image behave.
func (s *scene) setBehaviourOfNew(tier harness.Component, image string, behaviour podBehaviour) {
	s.t.Helper()
	there, err := tierPods(s.t.Context(), s.Namespace, tier)
	if err != nil {
		s.t.Fatal(err)
	}
	s.site.kubelet.setBehaviourOfNew(subject{s.Name, tier, image}, behaviour, there)
}

// calm is how long the operator must have written nothing to count as at rest.
const calm = time.Second

// rests waits until the operator is at rest and the MCPServer is judged so, and stays so.
func (s *scene) rests(v verdict) {
	s.t.Helper()
	s.await(v)
	harness.Eventually(s.t, "the operator is at rest", func(ctx context.Context) error {
		mark, err := s.Cluster.AuditMark(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, calm)
		defer cancel()
		found, _, err := s.Audit.WaitFor(ctx, mark, func(e []*audit.Event) bool { return len(e) > 0 }, audit.Writes(), s.ByOperator())
		if len(found) > 0 {
			return fmt.Errorf("it wrote %v", found)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		return err
	})
	server, err := s.Servers.Get(s.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		err = v.of(server, s.generation)
	}
	if err != nil {
		s.t.Errorf("MCPServer %s, but not for long: %v", v, err)
	}
}
