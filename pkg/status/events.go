// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Event is something to report to the user once.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the condition's.
	Reason string
	// Action that brought it to light.
	Action string
	// Note is the condition's message.
	Note string
}

// warnings are the conditions whose status True is a problem.
var warnings = map[string]bool{
	v1beta1.ConditionStdioReplicaCapped:                  true,
	v1beta1.ConditionSessionStorageWarning:               true,
	v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored: true,
	v1beta1.ConditionForeignPods:                         true,
	v1beta1.ConditionStalled:                             true,
}

// actions are those of conditions, by their reason or type. They are ToolHive's where it has one.
var actions = map[string]string{
	v1beta1.ReasonPermissionProfileUnsupported: "IgnorePermissionProfile",

	v1beta1.ConditionPodTemplateValid: "ValidatePodTemplateSpec",
	v1beta1.ConditionFieldsOwned:      "Apply",
	v1beta1.ConditionApplied:          "Apply",
	v1beta1.ConditionTakenOver:        actionTakeOver,
	v1beta1.ConditionStalled:          ActionRollOut,
}

const (
	actionValidate = "ValidateSpec"
	actionTakeOver = "TakeOver"
	// ActionRollOut is the action of events about rollouts.
	ActionRollOut = "RollOut"
)

// isWaiting reports whether a condition says that an MCPServer waits for its turn. In a large installation there are many,
// and an event for each would say nothing that the condition does not.
func isWaiting(c metav1.Condition) bool {
	return c.Type == v1beta1.ConditionTakenOver && c.Reason == v1beta1.ReasonWaiting || c.Reason == v1beta1.ReasonWaitingForTurn
}

// isProgress reports whether a condition is about a takeover that goes as it should.
func isProgress(c metav1.Condition) bool {
	return c.Type == v1beta1.ConditionTakenOver && (c.Reason == v1beta1.ReasonTakingOver || c.Reason == v1beta1.ReasonTakenOver)
}

// NewEvents returns a Warning event for each condition that reports a problem which the previous status did not report
// in the same words, and a Normal one when a takeover begins or ends. A problem that stands is reported once, also over
// a restart of the operator.
func NewEvents(previous, next v1beta1.MCPServerStatus) []Event {
	var events []Event
	for _, c := range next.Conditions {
		before := meta.FindStatusCondition(previous.Conditions, c.Type)
		if isWaiting(c) {
			continue
		}
		if isProgress(c) {
			if before == nil || before.Reason != c.Reason {
				events = append(events, Event{Type: corev1.EventTypeNormal, Reason: c.Reason, Action: actionTakeOver, Note: c.Message})
			}
			continue
		}
		told := before != nil && before.Reason == c.Reason && before.Message == c.Message
		if told || !isProblem(c) || c.Type == v1beta1.ConditionStalled && toldElsewhere(next.Conditions, c) {
			continue
		}
		action := cmp.Or(actions[c.Reason], actions[c.Type], actionValidate)
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: c.Reason, Action: action, Note: c.Message})
	}
	return events
}

// toldElsewhere reports whether another condition, of a type of its own, reports the same problem.
func toldElsewhere(conditions []metav1.Condition, stalled metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Type != stalled.Type && c.Reason == stalled.Reason
	})
}

func isProblem(c metav1.Condition) bool {
	switch {
	case c.Type == v1beta1.ConditionReady, c.Type == v1beta1.ConditionReconciling, c.Type == v1beta1.ConditionRolledOut:
		// Not being ready is part of every start; what keeps a server from it has a condition of its own.
		return false
	case warnings[c.Type]:
		return c.Status == metav1.ConditionTrue
	case c.Reason == v1beta1.ReasonValid:
		return false
	case c.Reason == v1beta1.ReasonAltered, c.Reason == v1beta1.ReasonUndone:
		return true // Every object is written, and one is stored otherwise, or made again.
	case c.Reason == v1beta1.ReasonPrimaryUpstreamProviderDenies:
		return true // The policy is valid, and no request gets through.
	case c.Reason == v1beta1.ReasonRunnerEnforcesLess:
		return true // What is referred to is valid, and the proxy lets more through.
	case c.Type == v1beta1.ConditionSpecValid:
		// Valid with another reason than Valid: it works, but not as it was written.
		return true
	default:
		return c.Status == metav1.ConditionFalse
	}
}
