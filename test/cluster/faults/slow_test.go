// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestASlowNamespaceHoldsUpNobodyElse has a webhook of one namespace, in which there are more new MCPServers than the operator has workers,
// answer each write of the operator late, or too late. An MCPServer elsewhere is created meanwhile, and edited again and again.
func TestASlowNamespaceHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{
		"late":     8 * time.Second,
		"too late": 12 * time.Second, // A webhook has ten seconds.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const crowd, edits = 24, 30
			calm, slow := newStage(t, env), newStage(t, env)
			calm.Operator(t, harness.Watching(calm.Name+","+slow.Name))
			calm.Create(t, harness.HTTPServer("web"))
			calm.AwaitStatus(t, "web", harness.Fine...)
			before := calm.editsWritten(t, "calm", edits)

			slow.delayOperator(t, takes)
			var creations sync.WaitGroup
			for i := range crowd {
				creations.Go(func() {
					_, err := slow.Servers.Create(t.Context(), harness.HTTPServer(fmt.Sprintf("new%02d", i)), metav1.CreateOptions{FieldManager: harness.Author})
					if err != nil {
						t.Error(err)
					}
				})
			}
			creations.Wait()
			mark := slow.Mark(t)
			if _, _, err := slow.Audit.WaitFor(t.Context(), mark, func(events []*audit.Event) bool { return len(events) > 0 }, slow.ByOperator()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			calm.Create(t, harness.HTTPServer("created"))
			calm.AwaitStatus(t, "created", harness.Fine...)
			ready := time.Since(began)
			during := calm.editsWritten(t, "slow", edits)
			t.Logf("an edit elsewhere was written after: in calm %v (median), %v (longest); under the webhook %v, %v; a new MCPServer was Ready after %v",
				before[edits/2], before[edits-1], during[edits/2], during[edits-1], ready)
			// The machine may be busy with other suites, but none waits for what the webhook takes.
			if usual, longest := during[edits/2], during[edits-1]; usual > max(2*before[edits/2], time.Second) || longest > takes/2 {
				t.Errorf("an edit waited for %v, at most %v; in calm for %v, at most %v", usual, longest, before[edits/2], before[edits-1])
			}
		})
	}
}

// editsWritten edits an MCPServer, one edit after the other, and returns how long after each the operator wrote its backend, sorted.
func (s *stage) editsWritten(t *testing.T, tag string, edits int) (all []time.Duration) {
	t.Helper()
	for i := range edits {
		mark := s.Mark(t)
		s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = fmt.Sprintf("example.com/mcp:%s-%d", tag, i) })
		var edited, written *audit.Event
		ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
		_, _, err := s.Audit.WaitFor(ctx, mark, func(events []*audit.Event) bool {
			for _, e := range events {
				switch {
				case e.Name != "web" || !e.IsWrite() || e.Code >= 300 || e.Namespace != s.Name:
				case e.FieldManager == harness.Author && e.Resource == "mcpservers":
					edited = e
				case e.Resource == "statefulsets" && strings.HasPrefix(e.FieldManager, "freehold-"):
					written = e
				}
			}
			return edited != nil && written != nil
		})
		cancel()
		if err != nil {
			t.Fatalf("edit %d was not carried out: %v", i, err)
		}
		all = append(all, written.Received.Sub(edited.Received))
	}
	slices.Sort(all)
	return all
}

// delayOperator has a webhook answer the operator's writes of all kinds in the namespace after so long.
func (s *stage) delayOperator(t *testing.T, takes time.Duration) {
	t.Helper()
	var asked atomic.Bool
	over := make(chan struct{})
	s.Webhook(t, "slow.example.com", admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}, func(request *admissionv1.AdmissionRequest) *metav1.Status {
		asked.Store(true)
		if strings.Contains(string(request.Options.Raw), `"fieldManager":"freehold-`) {
			select {
			case <-time.After(takes):
			case <-over:
			}
		}
		return nil
	})
	t.Cleanup(func() { close(over) })
	harness.Eventually(t, "the webhook is asked", func(ctx context.Context) error {
		_, err := s.Core.CoreV1().ConfigMaps(s.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asks"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && !asked.Load() {
			err = errors.New("not yet")
		}
		return err
	})
}
