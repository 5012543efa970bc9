// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// statusRequest returns a request to write the status, without its Excluded; nil names nothing.
func statusRequest(t *takeoverState, config *toolhivev1beta1ac.MCPServerApplyConfiguration) apply.Request {
	if config == nil {
		config = toolhivev1beta1ac.MCPServer(t.Key.Name, t.Key.Namespace)
	}
	ref := observed.ServerRef(t.Key)
	req := apply.Request{Object: ref, Config: runtime.ApplyConfiguration(config), Observed: apply.Observed{Live: t.Object(ref)}}
	t.inheritServer(managers.Status, &req)
	return req
}

// excludedFrom finds the fields that a request to write the status is to leave out. In a status that is left to ToolHive except
// for one condition it looks at that condition alone.
func excludedFrom(ctx context.Context, t *takeoverState, w apply.Writer, req apply.Request) *apply.Excluded {
	if !t.reporting {
		theirs := heldByToolHive(req.Live)
		req.Yield = func(path fieldpath.Path) bool { return theirs(path) || !isCondition(path, v1beta1.ConditionTakenOver) }
	}
	return takeover.Exclude(ctx, w, req)
}

// isCondition reports whether a path is that of a condition, or of a part of one.
func isCondition(path fieldpath.Path, conditionType string) bool {
	return takeover.IsCondition(path) &&
		path[:3].Equals(fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", conditionType)))
}
