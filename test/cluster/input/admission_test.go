// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// Attempts at a child are counted over some time after the first. With a back-off that starts at 0.2 s and doubles there
// are five in it; what happens to the other children brings about a few more.
const (
	counting        = 5 * time.Second
	attemptsAtLeast = 3
	attemptsAtMost  = 15
)

// TestQuota has a quota that admits nothing, and lifts it.
func TestQuota(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Expect(t, harness.Forbidden, s.Name)
	zero := resource.MustParse("0")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "nothing"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/statefulsets.apps": zero, "services": zero,
		}},
	}
	lift := s.limit(t, quota)
	s.Operate(t)
	start := s.Mark(t)
	s.Create(t, harness.HTTPServer("poor"))
	// Three Services and the StatefulSet; the first is named.
	expect := harness.WriteForbidden("service/mcp-poor-headless", "exceeded quota: nothing", "(+3 more)")
	s.AwaitStatus(t, "poor", expect)
	s.countAttempts(t, start, "poor", harness.Backend, harness.ProxyService)
	s.AwaitWarning(t, "poor", expect)
	want := []harness.Component{harness.BackendAccount, harness.ProxyAccount, harness.ProxyBinding, harness.ProxyRole, harness.RunConfig}
	s.AwaitComponents(t, "poor", want)

	lift()
	s.AwaitStatus(t, "poor", harness.Fine...)
}

// limit creates a quota, and returns when it is counted. What it returns lifts it.
func (s *stage) limit(t *testing.T, quota *corev1.ResourceQuota) (lift func()) {
	t.Helper()
	quotas := s.Core.CoreV1().ResourceQuotas(s.Name)
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the quota is counted", func(ctx context.Context) error {
		found, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(found.Status.Hard) != len(quota.Spec.Hard) {
			err = fmt.Errorf("its status is %v", found.Status)
		}
		return err
	})
	return func() {
		t.Helper()
		if err := quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusedPodsOfTheProxy has a quota with room for the backend's pod alone, and lifts it. The status quotes the quota at once, and
// no longer than it is in the way.
func TestRefusedPodsOfTheProxy(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	lift := s.limit(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-pod"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	})
	s.Operate(t)
	s.Create(t, harness.HTTPServer("poor"))
	found := s.AwaitStatus(t, "poor", harness.Expectation{
		Condition: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "FailedCreate",
		Message: []string{"The rollout of the proxy", "exceeded quota: one-pod"},
	})
	if status := found.Status; status.Phase != v1beta1.PhaseFailed || !strings.Contains(status.Message, "exceeded quota: one-pod") {
		t.Errorf("phase %s: %s", status.Phase, status.Message)
	}
	deployment, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), "poor", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stalled, most := meta.FindStatusCondition(found.Status.Conditions, v1beta1.ConditionStalled), 10*time.Second
	for _, c := range deployment.Status.Conditions {
		if took := stalled.LastTransitionTime.Sub(c.LastTransitionTime.Time); c.Type == appsv1.DeploymentReplicaFailure && took > most {
			t.Errorf("the status reported it after %v", took)
		}
	}
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	lift()
	found = s.AwaitStatus(t, "poor", harness.Fine...)
	if strings.Contains(found.Status.Message, "quota") || meta.IsStatusConditionTrue(found.Status.Conditions, v1beta1.ConditionStalled) {
		t.Errorf("with room again: %+v", found.Status)
	}
}

// countAttempts fails the test unless forbidden writes of the children are tried again, but slower and slower, and the
// status is not written every time. It returns all writes.
func (s *stage) countAttempts(t *testing.T, start audit.Mark, name string, components ...harness.Component) harness.WriteCount {
	t.Helper()
	refusals := func(events []*audit.Event, component harness.Component) (count int) {
		for item, n := range harness.CountWrites(name, events) {
			if strings.HasPrefix(item, string(component)+" (") {
				count += n
			}
		}
		return count
	}
	refusal := func(e *audit.Event) bool {
		return slices.ContainsFunc(components, func(component harness.Component) bool { return refusals([]*audit.Event{e}, component) > 0 })
	}
	events := s.AwaitWrites(t, start, "attempts at children that are forbidden", func(events []*audit.Event) bool {
		return !slices.ContainsFunc(components, func(component harness.Component) bool { return refusals(events, component) < attemptsAtLeast })
	})
	until := events[slices.IndexFunc(events, refusal)].Received.Add(counting)
	ctx, cancel := context.WithDeadline(t.Context(), until)
	defer cancel()
	never := func([]*audit.Event) bool { return false }
	events, _, err := s.Audit.WaitFor(ctx, start, never, s.ByOperator(), audit.Writes())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e *audit.Event) bool { return e.Received.After(until) })
	for _, component := range components {
		count := refusals(events, component)
		t.Logf("%s was tried %d times in %v", component, count, counting)
		if count > attemptsAtMost {
			t.Errorf("%s was tried %d times in %v; it should be %d times at the most", component, count, counting, attemptsAtMost)
		}
	}
	count := harness.CountWrites(name, events)
	// One while the MCPServer is being created, one that tells of the refusal.
	if count["status"] > 2 {
		t.Errorf("the status was written %d times", count["status"])
	}
	return count
}

// TestLimitRange has a limit that no pod of the backend meets, and lifts it. That is between the StatefulSet's
// controller and the API server; the operator waits.
func TestLimitRange(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	limits, begun := s.Core.CoreV1().LimitRanges(s.Name), s.Mark(t)
	if _, err := limits.Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "tiny"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"memory": resource.MustParse("1Mi")},
		}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Operate(t)
	server := s.Create(t, harness.HTTPServer("big", harness.PodTemplate(
		`{"spec":{"containers":[{"name":"mcp","resources":{"requests":{"memory":"1Gi"},"limits":{"memory":"1Gi"}}}]}}`)))
	s.AwaitStatus(t, server.Name, harness.Expectation{Condition: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady"}, harness.Fine[1], harness.Fine[2])
	// Not the event about it: those of a busy controller may be lost.
	refused := func(e *audit.Event) bool {
		return e.Verb == "create" && e.Resource == "pods" && e.Code == http.StatusForbidden
	}
	some := func(events []*audit.Event) bool { return len(events) > 0 }
	ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	if _, _, err := s.Audit.WaitFor(ctx, begun, some, audit.Namespace(s.Name), refused); err != nil {
		t.Fatalf("the backend's pod is not refused: %v", err)
	}
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	if err := limits.Delete(t.Context(), "tiny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitStatus(t, server.Name, harness.Fine...)
}

// TestAdmissionPolicy has a policy that denies one child, with the answers that a policy can give, and lifts it. The
// other children go on meanwhile.
func TestAdmissionPolicy(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]*metav1.StatusReason{
		"default": nil, "invalid": new(metav1.StatusReasonInvalid), "forbidden": new(metav1.StatusReasonForbidden),
		"too large": new(metav1.StatusReasonRequestEntityTooLarge),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, env)
			s.Expect(t, harness.Forbidden, s.Name)
			lift := s.deny(t, reason)
			s.Operate(t)
			start := s.Mark(t)
			s.Create(t, harness.HTTPServer("watched"))
			expect := harness.WriteForbidden("service/mcp-watched", "no such Services here")
			s.AwaitStatus(t, "watched", expect)
			s.countAttempts(t, start, "watched", harness.BackendService)
			s.AwaitOneWarning(t, "watched", expect)
			want := slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool { return component == harness.BackendService })
			s.AwaitComponents(t, "watched", want)
			lift()
			s.AwaitStatus(t, "watched", harness.Fine...)
		})
	}
}

// deny makes a policy that denies the backend's Service in the namespace, and returns when it is in force. What it
// returns takes the policy away.
func (s *stage) deny(t *testing.T, reason *metav1.StatusReason) (lift func()) {
	t.Helper()
	lift = s.Deny(t, services, admissionregistrationv1.Validation{
		Expression: "object.metadata.name != 'mcp-watched'", Message: "no such Services here", Reason: reason,
	})
	s.awaitDenial(t)
	return lift
}

// services are the creation and the change of Services.
var services = admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
}

// awaitDenial waits until the backend's Service of an MCPServer called watched is denied to everybody.
func (s *stage) awaitDenial(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the Service is denied", func(ctx context.Context) error {
		_, err := s.Core.CoreV1().Services(s.Name).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "mcp-watched"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it is admitted")
		}
		if !strings.Contains(err.Error(), "no such Services here") {
			return err
		}
		return nil
	})
}
