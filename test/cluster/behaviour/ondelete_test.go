// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOnDelete has the operator replace the pods of a backend, one after the other.
func TestOnDelete(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, onDelete)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	before := s.pods(t)
	s.neverTwoAtOnce(t)
	mark := s.Mark(t)
	s.roll(t, nextImage)
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
	server := s.AwaitReady(t, driven)
	if told := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionRolledOut).Message; !strings.Contains(told, nextImage) {
		t.Errorf("the image is not told: %s", told)
	}
	s.checkTold(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
}

// checkTold checks that the eviction of each pod is told by one event.
func (s drivenScene) checkTold(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the evictions are told", func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(s.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		told := map[string]int{}
		for _, event := range list.Items {
			if event.Reason == "ReplacingPod" && event.Series == nil {
				told[strings.Fields(event.Note)[1]]++
			}
		}
		if want := map[string]int{inTurn[0]: 1, inTurn[1]: 1, inTurn[2]: 1}; !cmp.Equal(want, told) {
			return fmt.Errorf("the events tell of %v", told)
		}
		return nil
	})
}

// TestOnDeleteResumes stops the operator half way.
func TestOnDeleteResumes(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, onDelete)
	running := s.Operate(t)
	s.AwaitSettled(t, driven)
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	harness.Eventually(t, "the first pod is evicted", func(context.Context) error {
		if len(s.evicted(t, mark)) == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	harness.Stop(t, running)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
}

// TestOnDeletePaused pauses a rollout before it begins: nothing is replaced, and the template is the new one.
func TestOnDeletePaused(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete", v1beta1.AnnotationBackendRollout: "paused"})
	s.Operate(t)
	s.AwaitSettled(t, driven)
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	s.awaitHeld(t, "Paused", driven+"-0")
	s.AwaitCalm(t, driven) // The proxy is rolled out as well.
	s.Quiet(t, s.Mark(t), harness.Calm)
	if got := s.pods(t); !cmp.Equal(before, got) {
		t.Errorf("pods were replaced: %v, before %v", got, before)
	}
	s.annotate(t, v1beta1.AnnotationBackendRollout, "")
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
}

// TestOnDeleteRespectsBudgets has a PodDisruptionBudget that allows no eviction, until it goes.
func TestOnDeleteRespectsBudgets(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, onDelete)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	budgets, ctx := env.Core.PolicyV1().PodDisruptionBudgets(s.Name), t.Context()
	_, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(3)), Selector: &metav1.LabelSelector{MatchLabels: render.BackendSelector(driven)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the budget counts", func(ctx context.Context) error {
		budget, err := budgets.Get(ctx, "all", metav1.GetOptions{})
		if err == nil && budget.Status.CurrentHealthy != 3 {
			err = fmt.Errorf("it counts %d", budget.Status.CurrentHealthy)
		}
		return err
	})
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	s.awaitHeld(t, "DisruptionBudget", inTurn[0], "disruption budget all")
	if names := s.evicted(t, mark); len(names) > 0 {
		t.Errorf("evicted: %v", names)
	}
	if err := budgets.Delete(ctx, "all", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
}

// TestTwoBudgetsHoldUpARollout has two PodDisruptionBudgets select the pods, which the API server answers evictions of with 500 and no
// reason. The rollout waits, what serves has not failed, and it goes on without anything else when one of them is gone.
func TestTwoBudgetsHoldUpARollout(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, onDelete)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	budgets, ctx := env.Core.PolicyV1().PodDisruptionBudgets(s.Name), t.Context()
	for _, name := range []string{"one", "other"} {
		if _, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: render.BackendSelector(driven)},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	s.awaitHeld(t, "DisruptionBudget", inTurn[0], "more than one PodDisruptionBudget")
	server, err := s.Servers.Get(ctx, driven, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if server.Status.Phase == v1beta1.PhaseFailed || !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionApplied) {
		t.Errorf("the status is %+v", server.Status)
	}
	if err := budgets.Delete(ctx, "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
}

// TestOnDeleteComesAndGoes asks for it when everything runs, and takes that back.
func TestOnDeleteComesAndGoes(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, nil)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	before, mark := s.pods(t), s.Mark(t)
	s.annotate(t, v1beta1.AnnotationBackendUpdateStrategy, "OnDelete")
	s.awaitStrategy(t, "OnDelete")
	s.AwaitSettled(t, driven)
	if writes := s.Writes(t, mark); len(writes) > 3 {
		t.Errorf("the strategy took %d writes: %v", len(writes), writes)
	}
	s.CheckOwnership(t, driven)
	if owners := ownership.Owners(s.MustObject(t, harness.Backend, driven), strategyKey+".type"); len(owners) != 1 || owners[0].Manager != managers.Backend {
		t.Errorf("the strategy is of %v", owners)
	}

	mark = s.Mark(t)
	s.annotate(t, v1beta1.AnnotationBackendUpdateStrategy, "")
	s.awaitStrategy(t, "RollingUpdate")
	s.AwaitSettled(t, driven)
	if owners := ownership.Owners(s.MustObject(t, harness.Backend, driven), strategyKey+".type"); len(owners) > 0 {
		t.Errorf("the strategy is of %v, and should be nobody's", owners)
	}
	if got := s.pods(t); !cmp.Equal(before, got) || len(s.evicted(t, mark)) > 0 {
		t.Errorf("pods were replaced: %v, before %v", got, before)
	}
	s.CheckOwnership(t, driven)
}

// TestAUsersOnDeleteIsLeftToTheUser leaves a strategy that somebody has set with kubectl to him, and his pods too.
func TestAUsersOnDeleteIsLeftToTheUser(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, nil)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	kubectl := s.Kubectl(t)
	kubectl.Run(t, "patch", "statefulset/"+driven, "-p", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	s.awaitHeld(t, "OnDelete", driven+"-0")
	s.AwaitCalm(t, driven) // The proxy is rolled out as well.
	s.Quiet(t, s.Mark(t), harness.Calm)
	if got := s.pods(t); !cmp.Equal(before, got) || len(s.evicted(t, mark)) > 0 {
		t.Errorf("pods were replaced: %v, before %v", got, before)
	}
	kubectl.Run(t, "delete", "pod", "--wait=false", driven+"-0", driven+"-1", driven+"-2")
	s.AwaitSettled(t, driven)

	// Whoever asks Freehold for another strategy than he has set himself is told so, and how to settle it.
	kubectl.Run(t, "patch", "statefulset/"+driven, "-p", `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}}}`)
	s.annotate(t, v1beta1.AnnotationBackendUpdateStrategy, "OnDelete")
	server := s.AwaitServer(t, driven, "is contested", func(server *v1beta1.MCPServer) error {
		if meta.IsStatusConditionFalse(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
			return nil
		}
		return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
	})
	told := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned).Message
	if !strings.Contains(told, "kubectl-patch") || !strings.Contains(told, strategyKey) {
		t.Errorf("the conflict does not name both: %s", told)
	}
	s.annotate(t, v1beta1.AnnotationTake, "kubectl-patch")
	s.awaitStrategy(t, "OnDelete")
	s.AwaitSettled(t, driven)
}

// TestABrokenPodDoesNotBlockItsCure has a pod that cannot run stand in the way of the template that would cure it.
func TestABrokenPodDoesNotBlockItsCure(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, nil)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	nowhere := `{"spec":{"nodeSelector":{"example.com/there":"never"},"containers":[{"name":"mcp"}]}}`
	s.Edit(t, driven, harness.PodTemplate(nowhere))
	s.AwaitServer(t, driven, "is stuck", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStalled)
		if c.Status != metav1.ConditionTrue || c.Reason != "Unschedulable" || !strings.Contains(c.Message, inTurn[0]) {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	mark := s.Mark(t)
	s.Edit(t, driven, func(server *v1beta1.MCPServer) { server.Spec.PodTemplateSpec = nil })
	s.AwaitSettled(t, driven)
	if diff := cmp.Diff(inTurn[:1], s.evicted(t, mark)); diff != "" {
		t.Errorf("evicted pods (-want +got):\n%s", diff)
	}
}

// TestEvictionIsForbidden has a policy that denies evictions, as a Role without them does. It is told, and tried again.
func TestEvictionIsForbidden(t *testing.T) {
	t.Parallel()
	s := newDrivenScene(t, onDelete)
	s.Expect(t, harness.Forbidden, s.Name)
	s.Operate(t)
	s.AwaitSettled(t, driven)
	lift := s.Deny(t, admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
	}, admissionregistrationv1.Validation{Expression: "false", Message: "no evictions here"})
	harness.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		err := env.Core.PolicyV1().Evictions(s.Name).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: inTurn[0], Namespace: s.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		if err == nil {
			return errors.New("an eviction is answered well")
		}
		if !strings.Contains(err.Error(), "no evictions here") {
			return err
		}
		return nil
	})
	before, mark := s.pods(t), s.Mark(t)
	s.roll(t, nextImage)
	s.AwaitServer(t, driven, "tells of it", func(server *v1beta1.MCPServer) error {
		for _, conditionType := range []string{v1beta1.ConditionStalled, v1beta1.ConditionApplied} {
			c := meta.FindStatusCondition(server.Status.Conditions, conditionType)
			if c == nil || c.Reason != "Forbidden" || !strings.Contains(c.Message, "pod/"+inTurn[0]) || !strings.Contains(c.Message, "no evictions here") {
				return fmt.Errorf("the condition %s is %+v", conditionType, c)
			}
		}
		return nil
	})
	lift()
	s.AwaitSettled(t, driven)
	s.checkReplaced(t, mark, before)
}
