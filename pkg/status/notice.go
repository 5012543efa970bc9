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
	config *toolhivev1beta1ac.MCPServerApplyConfiguration, conditions []metav1.Condition, news []Event,
) {
	set := conditionSet{previous: server.Status.Conditions, unreported: unreported, generation: server.Generation, now: now}
	set.add(f)
	of := toolhivev1beta1ac.MCPServerStatus().WithConditions(ConditionConfigs(set.collected)...)
	news = NewEvents(server.Status, v1beta1.MCPServerStatus{Conditions: set.collected})
	return toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithStatus(of), set.collected, news
}
