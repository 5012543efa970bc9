// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// refusedWithin is how soon an MCPServer tells that the API server refuses its pods.
const refusedWithin = time.Minute

// refusal is why the API server refuses a pod of the backend.
type refusal struct {
	// more is what the MCPServer's spec has besides, as JSON; NAMESPACE stands for the namespace.
	more string
	// cause is what refuses, in the words of the API server; refuse has it refuse, and lift ends that.
	cause        string
	refuse, lift func(t *testing.T, s *scene)
	// both is set where the proxy's pods are refused as well.
	both bool
}

// labelled sets a label of the namespace, which Pod Security reads; none removes it.
func labelled(level string) func(t *testing.T, s *scene) {
	return func(t *testing.T, s *scene) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": %s}}}`, level)
		if _, err := s.Core.CoreV1().Namespaces().Patch(t.Context(), s.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

var refusals = map[string]refusal{
	"Pod Security": {
		more:   `"podTemplateSpec": {"spec": {"containers": [{"name": "mcp", "securityContext": {"privileged": true}}]}}`,
		cause:  "violates PodSecurity",
		refuse: labelled(`"baseline"`), lift: labelled("null"),
	},
	"ServiceAccount": {
		more: `"serviceAccount": "later"`, cause: `serviceaccount "later" not found`,
		lift: func(t *testing.T, s *scene) {
			t.Helper()
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "later"}}
			if _, err := s.Core.CoreV1().ServiceAccounts(s.Name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	},
	"PriorityClass": {
		more: `"podTemplateSpec": {"spec": {"priorityClassName": "NAMESPACE-later"}}`, cause: "no PriorityClass with name",
		lift: func(t *testing.T, s *scene) {
			t.Helper()
			class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-later"}, Value: 7}
			if _, err := s.Core.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = s.Core.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{})
			})
		},
	},
	"ResourceQuota": {
		cause: "exceeded quota", both: true,
		refuse: func(t *testing.T, s *scene) {
			t.Helper()
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			}}
			if _, err := s.Core.CoreV1().ResourceQuotas(s.Name).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the quota is in force", func(ctx context.Context) error {
				live, err := s.Core.CoreV1().ResourceQuotas(s.Name).Get(ctx, "pods", metav1.GetOptions{})
				if err == nil && live.Status.Hard == nil {
					err = fmt.Errorf("its status is %v", live.Status)
				}
				return err
			})
		},
		lift: func(t *testing.T, s *scene) {
			t.Helper()
			if err := s.Core.CoreV1().ResourceQuotas(s.Name).Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	},
}

// TestVerdictOnAnMCPServerWhosePodsAreRefused: the API server's reason is in the status within a minute, and the MCPServer has failed. When
// nothing refuses the pods any more it becomes ready. Freehold reads events only while a pod is refused.
func TestVerdictOnAnMCPServerWhosePodsAreRefused(t *testing.T) {
	t.Parallel()
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServers(t)
			if r.refuse != nil {
				r.refuse(t, s)
			}
			s.Operate(t)
			created := s.Mark(t)
			spec := serverSpec
			if r.more != "" {
				spec = strings.TrimSuffix(serverSpec, "}") + ", " + strings.ReplaceAll(r.more, "NAMESPACE", s.Name) + "}"
			}
			s.create(t, "web", spec)
			live := s.await(t, "refused", "web", status.FailedStatus, r.cause)
			if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase != string(v1beta1.PhaseFailed) {
				t.Errorf("the phase is %s", phase)
			}
			if message, _, _ := unstructured.NestedString(live.Object, "status", "message"); !strings.Contains(message, r.cause) {
				t.Errorf("the message is %q", message)
			}
			stalled := conditionOf(live, v1beta1.ConditionStalled)
			began := live.GetCreationTimestamp().Time
			if took := harness.AtPace(began, stalled.LastTransitionTime.Sub(began)); took > refusedWithin {
				t.Errorf("it took %s", took)
			}
			if want := "The rollout of the backend is Stuck: FailedCreate: "; !r.both && !strings.Contains(stalled.Message, want) {
				t.Errorf("Stalled says %q, not %q", stalled.Message, want)
			}
			if looks := s.looks(t, created); len(looks) == 0 && !r.both {
				t.Error("no event was read")
			}
			r.lift(t, s)
			s.await(t, "not refused any more", "web", status.CurrentStatus)
			s.AwaitRest(t)
			rested := s.Mark(t)
			s.Quiet(t, rested, harness.Calm)
			if looks := s.looks(t, rested); len(looks) > 0 {
				t.Errorf("events are read although no pod is refused: %v", looks)
			}
			s.believeServers(t)
		})
	}
}

// looks returns the operator's lists of events since a mark.
func (s *scene) looks(t *testing.T, since audit.Mark) []*audit.Event {
	t.Helper()
	found, _, err := s.Audit.Since(since, s.ByOperator(), func(e *audit.Event) bool { return e.Resource == "events" && e.Verb == "list" })
	if err != nil {
		t.Fatal(err)
	}
	return found
}
