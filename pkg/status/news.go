// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Event is something to tell the user once.
type Event struct {
	// Reason is the condition's.
	Reason string
	// Action that brought it to light.
	Action string
	// Note is the condition's message.
	Note string
}

// warnings are the conditions whose status True is the bad news.
var warnings = map[string]bool{
	v1beta1.ConditionStdioReplicaCapped:                  true,
	v1beta1.ConditionSessionStorageWarning:               true,
	v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored: true,
}

// actions are ToolHive's where it has one for the condition.
var actions = map[string]string{
	v1beta1.ConditionPodTemplateValid: "ValidatePodTemplateSpec",
	v1beta1.ConditionFieldsOwned:      "Apply",
	v1beta1.ConditionApplied:          "Apply",
}

const actionValidate = "ValidateSpec"

// News returns a Warning event for each condition that tells a problem which the previous status did not tell
// in the same words. A problem that stands is told once, also over a restart of the operator.
func News(previous, next v1beta1.MCPServerStatus) []Event {
	var events []Event
	for _, c := range next.Conditions {
		before := meta.FindStatusCondition(previous.Conditions, c.Type)
		if !isProblem(c) || before != nil && before.Reason == c.Reason && before.Message == c.Message {
			continue
		}
		action, ok := actions[c.Type]
		if !ok {
			action = actionValidate
		}
		events = append(events, Event{Reason: c.Reason, Action: action, Note: c.Message})
	}
	return events
}

func isProblem(c metav1.Condition) bool {
	switch {
	case c.Type == v1beta1.ConditionReady:
		// Not being ready is part of every start; what keeps a server from it has a condition of its own.
		return false
	case warnings[c.Type]:
		return c.Status == metav1.ConditionTrue
	case c.Reason == ReasonSpecValid:
		return false
	case c.Type == v1beta1.ConditionSpecValid:
		// Valid with another reason than Valid: it works, but not as it was written.
		return true
	default:
		return c.Status == metav1.ConditionFalse
	}
}
