// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

// Notice is one condition for an MCPServer whose status is otherwise left to somebody else, and the events that tell of it.
func Notice(server *v1beta1.MCPServer, f Finding, now time.Time) (*toolhivev1beta1ac.MCPServerApplyConfiguration, []Event) {
	set := conditionSet{previous: server.Status.Conditions, generation: server.Generation, now: now}
	set.add(f)
	config := toolhivev1beta1ac.MCPServerStatus().WithConditions(conditionConfigs(set.collected)...)
	news := News(server.Status, v1beta1.MCPServerStatus{Conditions: set.collected})
	return toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithStatus(config), news
}
