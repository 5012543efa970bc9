// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/test/harness"
)

// proxySituations are what happens to the proxy's pods while the backend does well.
var proxySituations = []situation{
	{"all goes well", func(s *scene) {
		s.setBehaviour(harness.Proxy, second, creating)
		s.change(image(second))
		s.awaitPod(harness.Backend, second, "is ready", isPod(podZero, isReady))
		s.await(goesOn())
		kubectl := s.Kubectl(s.t)
		wait := harness.Call{Args: []string{"wait", "--for=condition=Ready", "--timeout=5s", "mcpserver/" + name}}
		if output, err := kubectl.Try(s.t.Context(), wait); err == nil || !strings.Contains(err.Error(), "timed out") {
			s.t.Errorf("while the new proxy is being made, kubectl wait says %q, %v", output, err)
		}
		s.setBehaviour(harness.Proxy, second, ready)
		s.rests(serves())
		kubectl.Do(s.t, wait)
	}},
	{"the image cannot be pulled", func(s *scene) {
		s.setBehaviour(harness.Proxy, second, pullsLater)
		s.change(image(second))
		pod := s.awaitPod(harness.Proxy, second, "is there", anyPod)
		s.rests(stuckAt(pod.Name, "ImagePullBackOff", "container toolhive"))
		s.setBehaviour(harness.Proxy, second, ready)
		s.await(serves())
	}},
	{"a crash loop", func(s *scene) {
		s.setBehaviour(harness.Proxy, second, crashes)
		s.change(image(second))
		pod := s.awaitPod(harness.Proxy, second, "is there", anyPod)
		s.rests(stuckAt(pod.Name, "CrashLoopBackOff", "container toolhive"))
		// The Deployment's controller replaces it by itself.
		s.change(image(third))
		s.await(serves())
	}},
	{"nowhere to run", func(s *scene) {
		s.MustPatch(s.t, harness.Hand, harness.Proxy, name,
			harness.Add("/spec/template/spec/nodeSelector", map[string]string{s.label(): "yes"}))
		s.change(image(second))
		pod := s.awaitPod(harness.Proxy, second, "is there", anyPod)
		s.rests(stuckAt(pod.Name, "Unschedulable"))
		s.allowNode()
		s.await(serves())
	}},
	{"never ready", func(s *scene) {
		s.setBehaviour(harness.Proxy, second, neverReady)
		since := s.seen() // Before the change: what follows it may be seen at once.
		s.change(image(second))
		pod := s.awaitPod(harness.Proxy, second, "is there", anyPod)
		s.await(stuckAt(pod.Name, "NotReady"))
		s.hasBeen(since, goesOn())
		s.setBehaviour(harness.Proxy, second, ready)
		s.await(serves())
	}},
	{"longer than the user has allowed", func(s *scene) {
		s.MustPatch(s.t, harness.Hand, harness.Proxy, name, harness.Replace("/spec/progressDeadlineSeconds", 2))
		s.setBehaviour(harness.Proxy, second, notReadyYet)
		s.change(image(second))
		s.await(stuck("ProgressDeadlineExceeded"))
		s.setBehaviour(harness.Proxy, second, ready)
		s.await(serves())
	}},
	{"paused", func(s *scene) {
		s.MustPatch(s.t, harness.Hand, harness.Proxy, name, harness.Add("/spec/paused", true))
		s.change(image(second))
		s.rests(waits("Paused"))
		s.MustPatch(s.t, harness.Hand, harness.Proxy, name, harness.Remove("/spec/paused"))
		s.await(serves())
	}},
	{"a pod is deleted by hand", func(s *scene) {
		s.setBehaviourOfNew(harness.Proxy, first, creating)
		s.deletePod(s.awaitPod(harness.Proxy, first, "is ready", isReady).Name)
		pod := s.awaitPod(harness.Proxy, first, "is being made", waitsOnNode)
		s.await(goesOn())
		s.deletePod(pod.Name)
		s.setBehaviour(harness.Proxy, first, ready)
		s.await(serves())
	}},
	{"scaled during the rollout", func(s *scene) {
		s.setBehaviour(harness.Proxy, second, creating)
		s.change(image(second))
		s.awaitPod(harness.Proxy, second, "is being made", waitsOnNode)
		s.await(goesOn())
		s.change(harness.Replicas(3, 2))
		s.await(goesOn())
		s.setBehaviour(harness.Proxy, second, ready)
		s.await(serves())
		harness.Eventually(s.t, "three proxies in the status", func(ctx context.Context) error {
			server, err := s.Servers.Get(ctx, name, metav1.GetOptions{})
			if err == nil && server.Status.ReadyReplicas != 3 {
				err = fmt.Errorf("there are %d", server.Status.ReadyReplicas)
			}
			return err
		})
	}},
}
