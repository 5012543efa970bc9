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
