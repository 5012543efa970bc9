// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

// Notice returns a status of one condition, for an MCPServer whose status otherwise belongs to another operator, and the
// events that report it. unreported are the conditions of a notice that was made before and has not been written.
func Notice(server *v1beta1.MCPServer, f Finding, unreported []metav1.Condition, now time.Time) (
	config *toolhivev1beta1ac.MCPServerApplyConfiguration, conditions []metav1.Condition, events []Event,
) {
	conditions = Conditions(server.Status.Conditions, unreported, server.Generation, now, f)
	of := toolhivev1beta1ac.MCPServerStatus().WithConditions(ConditionConfigs(conditions)...)
	events = NewEvents(server.Status, v1beta1.MCPServerStatus{Conditions: conditions})
	return toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithStatus(of), conditions, events
}

// Held returns the last status of an MCPServer that is being deleted, and that the finalizers of others keep. Freehold looks after it no
// more: what has been made for it serves until it is gone. All else that was reported stays.
func Held(server *v1beta1.MCPServer, finalizers []string, now time.Time) *toolhivev1beta1ac.MCPServerApplyConfiguration {
	next := *server.Status.DeepCopy()
	next.Phase, next.ObservedGeneration = v1beta1.PhaseTerminating, server.Generation
	next.Message = "MCP server is being deleted, and stays until others remove their finalizers: " + List(finalizers)
	set := conditionSet{previous: server.Status.Conditions, generation: server.Generation, now: now}
	for _, conditionType := range v1beta1.OwnedConditions() {
		set.keep(conditionType)
	}
	for condition, is := range map[string]metav1.ConditionStatus{
		v1beta1.ConditionReady: metav1.ConditionFalse, v1beta1.ConditionReconciling: metav1.ConditionTrue, v1beta1.ConditionStalled: metav1.ConditionFalse,
	} {
		set.add(Finding{condition, is, v1beta1.ReasonTerminating, next.Message})
	}
	next.Conditions = set.sorted()
	return Intent(server, next)
}
