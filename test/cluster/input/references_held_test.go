// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// plain is an address of an issuer that must not be used, since tokens could be read on their way.
const plain = "http://plain.example.com"

// TestInvalidEdit edits an issuer to what cannot be used, while another operator's verdict on the generation before stands. No
// version of a child has it. The verdict of another operator on the present generation counts too, and only that.
func TestInvalidEdit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Operate(t, foreign)
	history := s.record(t)
	first := s.publish(t, issuer(address(1)))
	s.judge(t, metav1.ConditionTrue, first.Generation, "first")
	s.settled(t, harness.HTTPServer(web, authenticated))
	server := s.AwaitStatus(t, web, usable)
	if server.Status.OIDCConfigHash != "first" {
		t.Errorf("the hash in the status is %q", server.Status.OIDCConfigHash)
	}
	before, pods, mark := s.deployment(t, web), s.pods(t), s.Mark(t)

	s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = plain })
	server = s.AwaitStatus(t, web, notValid.Saying("plain http", goesOn, "generation 1 of mcpoidcconfig/"+shared), notReady)
	if server.Status.Phase != v1beta1.PhaseFailed || server.Status.OIDCConfigHash != "first" { // It is the one in use.
		t.Errorf("phase %s and hash %q", server.Status.Phase, server.Status.OIDCConfigHash)
	}
	s.expectWritten(t, web, mark, harness.WriteCount{})
	s.Quiet(t, s.Mark(t), harness.Calm)

	third := s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = address(1) })
	s.AwaitStatus(t, web, append(harness.Fine[:1:1], usable)...)
	s.expectWritten(t, web, mark, harness.WriteCount{})
	s.judge(t, metav1.ConditionFalse, third.Generation, "first")
	s.AwaitStatus(t, web, notValid.Saying("Valid=False", "judged by another operator", goesOn))
	fourth := s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = address(4) })
	s.awaitDocument(t, web, address(4))
	s.AwaitStatus(t, web, append(harness.Fine[:1:1], usable)...)
	s.judge(t, metav1.ConditionTrue, fourth.Generation, "fourth")
	s.AwaitServer(t, web, "follows the hash", func(server *v1beta1.MCPServer) error {
		if server.Status.OIDCConfigHash != "fourth" {
			return fmt.Errorf("it is %q", server.Status.OIDCConfigHash)
		}
		return nil
	})
	if got := s.deployment(t, web).Generation; got != before.Generation+1 || cmp.Equal(pods, s.pods(t)) {
		t.Errorf("the Deployment has gone from generation %d to %d, where one edit was to roll it out", before.Generation, got)
	}
	history.never(t, plain)
	history.templates(t)
}

// TestDeletedWhileRolling deletes an issuer in the middle of the rollout that an edit of it has caused. The rollout goes on, and
// its proxies are no less protected. Made again with the same content, it causes no write but that of the status.
func TestDeletedWhileRolling(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Operate(t, foreign)
	history := s.record(t)
	s.publish(t, issuer(address(1)))
	s.settled(t, harness.HTTPServer(web, authenticated))
	before := s.pods(t)
	thaw := s.freezePods(t, len(before))

	s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = address(2) })
	harness.Eventually(t, "the rollout begins", func(context.Context) error {
		if d := s.deployment(t, web); d.Generation == 1 || d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas == d.Status.Replicas {
			return fmt.Errorf("generation %d, %+v", d.Generation, d.Status)
		}
		return nil
	})
	s.withdraw(t)
	s.AwaitStatus(t, web, missing.Saying(goesOn, "generation 2 of mcpoidcconfig/"+shared), notReady)
	if diff := cmp.Diff(before, s.pods(t)); diff != "" {
		t.Fatalf("the rollout is not in the middle (-before +now):\n%s", diff)
	}
	thaw()
	harness.Eventually(t, "the rollout ends", func(context.Context) error {
		d := s.deployment(t, web)
		if d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1 || d.Status.AvailableReplicas != 1 {
			return fmt.Errorf("it is on its way: %+v", d.Status)
		}
		return nil
	})
	s.AwaitCalm(t, web)
	if text := s.document(t, web); !strings.Contains(text, address(2)) {
		t.Errorf("the proxies read %s", text)
	}
	s.AwaitStatus(t, web, missing.Saying(goesOn), notReady)
	s.Quiet(t, s.Mark(t), harness.Calm)

	pods, mark := s.pods(t), s.Mark(t)
	s.publish(t, issuer(address(2)))
	s.AwaitStatus(t, web, append(harness.Fine[:1:1], usable)...)
	s.expectWritten(t, web, mark, harness.WriteCount{})
	if diff := cmp.Diff(pods, s.pods(t)); diff != "" {
		t.Errorf("pods were replaced for an issuer like that before (-before +after):\n%s", diff)
	}
	history.templates(t)
}

// freezePods lets no further pod be made in the namespace, until the function that it returns is called.
func (s scene) freezePods(t *testing.T, present int) (thaw func()) {
	t.Helper()
	quotas := s.Core.CoreV1().ResourceQuotas(s.Name)
	limit := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(present), resource.DecimalSI)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "frozen"}, Spec: corev1.ResourceQuotaSpec{Hard: limit}}
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the quota counts pods", func(ctx context.Context) error {
		live, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && (live.Status.Hard.Pods().Value() != int64(present) || live.Status.Used.Pods().Value() != int64(present)) {
			err = fmt.Errorf("its status is %+v", live.Status)
		}
		return err
	})
	return func() {
		t.Helper()
		if err := quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// TestEditsWhileHeld edits an MCPServer while its issuer is missing. What the proxy has no part in is carried out; what it must
// not run ahead of, or behind, waits for it.
func TestEditsWhileHeld(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Operate(t, foreign)
	s.publish(t, issuer(address(1)))
	s.settled(t, harness.HTTPServer(web, authenticated))
	s.withdraw(t)
	s.AwaitStatus(t, web, missing.Saying(goesOn), notReady)

	mark := s.Mark(t)
	s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.AwaitStatus(t, web, missing, notReady)
	s.expectWritten(t, web, mark, harness.Once("backend"))
	mark = s.Mark(t)
	edited := s.Edit(t, web, func(server *v1beta1.MCPServer) {
		server.Spec.MCPPort, server.Spec.ProxyPort = 9999, 7777
	})
	s.AwaitStatus(t, web, missing.Saying("generation 1 of the MCPServer"), notReady)
	s.expectWritten(t, web, mark, harness.WriteCount{})
	s.Edit(t, web, func(server *v1beta1.MCPServer) {
		server.Spec.Transport, server.Spec.MCPPort = v1beta1.TransportStdio, 0
	})
	s.AwaitStatus(t, web, missing, notReady)
	s.expectWritten(t, web, mark, harness.WriteCount{})

	s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec = edited.Spec })
	s.AwaitStatus(t, web, missing, notReady)
	s.expectWritten(t, web, mark, harness.WriteCount{})
	s.publish(t, issuer(address(1)))
	s.AwaitStatus(t, web, append(harness.Fine[:1:1], usable)...)
	s.AwaitSettled(t, web)
	got := s.written(t, web, mark)
	for _, item := range []string{"runconfig", "proxy", "backend", "service/proxy", "service/backend", "service/headless"} {
		if got[item] > 1 || got[item] == 0 && item != "service/headless" && item != "service/backend" {
			t.Errorf("%d writes of %s, in %v", got[item], item, got)
		}
	}
	if text := s.document(t, web); !strings.Contains(text, address(1)) || !strings.Contains(text, "9999") || !strings.Contains(text, harness.OtherImage) {
		t.Errorf("the proxy reads %s", text)
	}
}

// TestReferenceRemoved takes the reference out of an MCPServer, with its issuer and without. It is an order: the proxy is rolled
// out once, and neither a condition nor a hash is left.
func TestReferenceRemoved(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"usable": false, "missing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.Operate(t, foreign)
			config := s.publish(t, issuer(address(1)))
			s.judge(t, metav1.ConditionTrue, config.Generation, "hash")
			s.settled(t, harness.HTTPServer(web, authenticated))
			if held {
				s.withdraw(t)
				s.AwaitStatus(t, web, missing, notReady)
			}
			before, mark := s.deployment(t, web), s.Mark(t)
			s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.OIDCConfigRef = nil })
			s.AwaitStatus(t, web, harness.Fine...)
			s.AwaitSettled(t, web)
			want := harness.Once("runconfig", "proxy")
			got := s.written(t, web, mark)
			delete(got, "delete runconfig") // The one that no ReplicaSet names any more.
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("writes %v, want %v", got, want)
			}
			server, err := s.Servers.Get(t.Context(), web, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if found := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionOIDCConfigRefValidated); found != nil || server.Status.OIDCConfigHash != "" {
				t.Errorf("what is left is the condition %v and the hash %q", found, server.Status.OIDCConfigHash)
			}
			if got := s.deployment(t, web); got.Generation != before.Generation+1 {
				t.Errorf("the Deployment has gone from generation %d to %d", before.Generation, got.Generation)
			}
			if text := s.document(t, web); strings.Contains(text, "Issuer") {
				t.Errorf("the proxy reads %s", text)
			}
		})
	}
}
