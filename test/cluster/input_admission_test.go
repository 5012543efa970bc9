// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// forbidden is what is told while something else than validation refuses a child.
func forbidden(message ...string) expectation {
	return expectation{v1beta1.ConditionApplied, metav1.ConditionFalse, "Forbidden", message}
}

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
	s.Operate(t)
	start := s.Mark(t)
	s.Create(t, httpServer("poor"))
	// Three Services and the StatefulSet; the first is named.
	expect := forbidden("service/mcp-poor-headless", "exceeded quota: nothing", "(+3 more)")
	s.await(t, "poor", expect)
	s.countAttempts(t, start, "poor", harness.Backend, harness.ProxyService)
	s.oneWarning(t, "poor", expect)
	want := []harness.Component{harness.BackendAccount, harness.ProxyAccount, harness.ProxyBinding, harness.ProxyRole, harness.RunConfig}
	s.awaitComponents(t, "poor", want)

	if err := quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "poor", fine...)
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
	events := s.AwaitWrites(t, start, "attempts at children that are forbidden", func(events []*audit.Event) bool {
		return !slices.ContainsFunc(components, func(component harness.Component) bool { return refusals(events, component) < attemptsAtLeast })
	})
	until := events[0].Received.Add(counting)
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

// awaitComponents waits until an MCPServer has just these children.
func (s *stage) awaitComponents(t *testing.T, name string, want []harness.Component) {
	t.Helper()
	slices.Sort(want)
	harness.Eventually(t, "the other children of "+name, func(ctx context.Context) error {
		objects, err := s.ObjectsOf(ctx, name)
		if err != nil {
			return err
		}
		delete(objects, harness.ServerItself)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(objects))); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
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
	server := s.Create(t, httpServer("big", harness.PodTemplate(
		`{"spec":{"containers":[{"name":"mcp","resources":{"requests":{"memory":"1Gi"},"limits":{"memory":"1Gi"}}}]}}`)))
	s.await(t, server.Name, expectation{v1beta1.ConditionReady, metav1.ConditionFalse, "NotReady", nil}, fine[1], fine[2])
	// Not the event about it: those of a busy controller may be lost.
	refused := func(e *audit.Event) bool {
		return e.Verb == "create" && e.Resource == "pods" && e.Code == http.StatusForbidden
	}
	some := func(events []*audit.Event) bool { return len(events) > 0 }
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	if _, _, err := s.Audit.WaitFor(ctx, begun, some, audit.Namespace(s.Name), refused); err != nil {
		t.Fatalf("the backend's pod is not refused: %v", err)
	}
	s.awaitCalm(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	if err := limits.Delete(t.Context(), "tiny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, server.Name, fine...)
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
			s.Create(t, httpServer("watched"))
			expect := forbidden("service/mcp-watched", "no such Services here")
			s.await(t, "watched", expect)
			s.countAttempts(t, start, "watched", harness.BackendService)
			s.oneWarning(t, "watched", expect)
			want := slices.DeleteFunc(httpComponents(), func(component harness.Component) bool { return component == harness.BackendService })
			s.awaitComponents(t, "watched", want)
			lift()
			s.await(t, "watched", fine...)
		})
	}
}

// deny makes a policy that denies the backend's Service in the namespace, and returns when it is in force. What it
// returns takes the policy away.
func (s *stage) deny(t *testing.T, reason *metav1.StatusReason) (lift func()) {
	t.Helper()
	lift = denyIn(t, s.Namespace, services, admissionregistrationv1.Validation{
		Expression: "object.metadata.name != 'mcp-watched'", Message: "no such Services here", Reason: reason,
	})
	s.awaitDenial(t)
	return lift
}

// denyIn makes a policy for requests in a namespace, which is in force some time later.
func denyIn(
	t *testing.T, ns *harness.Namespace, requests admissionregistrationv1.RuleWithOperations, unless admissionregistrationv1.Validation,
) (lift func()) {
	t.Helper()
	admission := ns.Core.AdmissionregistrationV1()
	name := ns.Name
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns.Name}},
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: requests}},
			},
			Validations: []admissionregistrationv1.Validation{unless},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	t.Cleanup(lift)
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
