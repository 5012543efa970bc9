// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
)

// telling is a status of one condition.
func telling(conditionType string, s metav1.ConditionStatus, reason, message string) v1beta1.MCPServerStatus {
	return v1beta1.MCPServerStatus{Conditions: []metav1.Condition{{Type: conditionType, Status: s, Reason: reason, Message: message}}}
}

func TestNewsAreProblemsThatHaveChanged(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	nothing := v1beta1.MCPServerStatus{}
	conflict := telling(v1beta1.ConditionFieldsOwned, no, "FieldManagerConflict", "kubectl")
	for name, test := range map[string]struct {
		previous, next v1beta1.MCPServerStatus
		want           []status.Event
	}{
		"a new problem":            {nothing, conflict, []status.Event{{Type: "Warning", Reason: "FieldManagerConflict", Action: "Apply", Note: "kubectl"}}},
		"the same problem":         {conflict, conflict, nil},
		"the problem after a cure": {telling(v1beta1.ConditionFieldsOwned, yes, "NoConflict", "fine"), conflict, []status.Event{{Type: "Warning", Reason: "FieldManagerConflict", Action: "Apply", Note: "kubectl"}}},
		"a cure":                   {conflict, telling(v1beta1.ConditionFieldsOwned, yes, "NoConflict", "fine"), nil},
		"another message":          {telling(v1beta1.ConditionFieldsOwned, no, "FieldManagerConflict", "helm"), conflict, []status.Event{{Type: "Warning", Reason: "FieldManagerConflict", Action: "Apply", Note: "kubectl"}}},
		"another reason":           {telling(v1beta1.ConditionFieldsOwned, no, "ObjectNotOurs", "kubectl"), conflict, []status.Event{{Type: "Warning", Reason: "FieldManagerConflict", Action: "Apply", Note: "kubectl"}}},
		"not ready":                {nothing, telling(v1beta1.ConditionReady, no, "NotReady", "being created"), nil},
		"a write that failed":      {nothing, telling(v1beta1.ConditionApplied, no, "Invalid", "x"), []status.Event{{Type: "Warning", Reason: "Invalid", Action: "Apply", Note: "x"}}},
		"a pod template": {
			nothing, telling(v1beta1.ConditionPodTemplateValid, no, "InvalidPodTemplateSpec", "x"),
			[]status.Event{{Type: "Warning", Reason: "InvalidPodTemplateSpec", Action: "ValidatePodTemplateSpec", Note: "x"}},
		},
		"a spec that cannot work": {nothing, telling(v1beta1.ConditionSpecValid, no, "NameTooLong", "x"), []status.Event{{Type: "Warning", Reason: "NameTooLong", Action: "ValidateSpec", Note: "x"}}},
		"a spec that works oddly": {nothing, telling(v1beta1.ConditionSpecValid, yes, "DuplicateEnv", "x"), []status.Event{{Type: "Warning", Reason: "DuplicateEnv", Action: "ValidateSpec", Note: "x"}}},
		"a permission profile": {
			nothing, telling(v1beta1.ConditionSpecValid, yes, v1beta1.ReasonPermissionProfileUnsupported, "x"),
			[]status.Event{{Type: "Warning", Reason: "PermissionProfileUnsupported", Action: "IgnorePermissionProfile", Note: "x"}},
		},
		"a spec that works":        {nothing, telling(v1beta1.ConditionSpecValid, yes, "Valid", "x"), nil},
		"a warning that is on":     {nothing, telling(v1beta1.ConditionStdioReplicaCapped, yes, "StdioTransportCapAt1", "x"), []status.Event{{Type: "Warning", Reason: "StdioTransportCapAt1", Action: "ValidateSpec", Note: "x"}}},
		"a warning that is off":    {nothing, telling(v1beta1.ConditionStdioReplicaCapped, no, "StdioReplicaCapNotActive", "x"), nil},
		"sessions may be lost":     {nothing, telling(v1beta1.ConditionSessionStorageWarning, yes, "SessionStorageMissingForReplicas", "x"), []status.Event{{Type: "Warning", Reason: "SessionStorageMissingForReplicas", Action: "ValidateSpec", Note: "x"}}},
		"a field without effect":   {nothing, telling(v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored, yes, "PrimaryUpstreamProviderIgnored", "x"), []status.Event{{Type: "Warning", Reason: "PrimaryUpstreamProviderIgnored", Action: "ValidateSpec", Note: "x"}}},
		"a policy that denies all": {nothing, telling(v1beta1.ConditionAuthzConfigValidated, yes, "PrimaryUpstreamProviderDenies", "x"), []status.Event{{Type: "Warning", Reason: "PrimaryUpstreamProviderDenies", Action: "ValidateSpec", Note: "x"}}},
		"less than a filter asks for": {
			nothing, telling(v1beta1.ConditionToolConfigRefValidated, yes, v1beta1.ReasonRunnerEnforcesLess, "x"),
			[]status.Event{{Type: "Warning", Reason: "RunnerEnforcesLess", Action: "ValidateSpec", Note: "x"}},
		},
		"what nobody has looked at": {nothing, telling(v1beta1.ConditionGroupRefValidated, unknown, "NotChecked", "x"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, status.NewEvents(test.previous, test.next)); diff != "" {
				t.Errorf("news (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewsTellOfEveryProblem(t *testing.T) {
	var next v1beta1.MCPServerStatus
	for _, one := range []v1beta1.MCPServerStatus{
		telling(v1beta1.ConditionApplied, metav1.ConditionTrue, "Applied", "fine"),
		telling(v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, "FieldManagerConflict", "one"),
		telling(v1beta1.ConditionReady, metav1.ConditionFalse, "NotReady", "not yet"),
		telling(v1beta1.ConditionSpecValid, metav1.ConditionFalse, "NameTooLong", "two"),
	} {
		next.Conditions = append(next.Conditions, one.Conditions...)
	}
	want := []status.Event{
		{Type: "Warning", Reason: "FieldManagerConflict", Action: "Apply", Note: "one"},
		{Type: "Warning", Reason: "NameTooLong", Action: "ValidateSpec", Note: "two"},
	}
	if diff := cmp.Diff(want, status.NewEvents(v1beta1.MCPServerStatus{}, next)); diff != "" {
		t.Errorf("news (-want +got):\n%s", diff)
	}
}

// A problem is told once, and a restart of the operator, which knows of the past what the status tells, does not
// tell it again.
func TestNewsAreToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		observed := genObservation(t)
		first := status.Compute(observed, noon)
		observed.Server.Status = stored(t, first)
		again := status.Compute(observed, noon.Add(time.Hour))
		if repeated := status.NewEvents(observed.Server.Status, again); len(repeated) > 0 {
			t.Fatalf("told again: %v", repeated)
		}
	})
}
