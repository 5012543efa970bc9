// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// compose computes the status, and returns the observation from which it was. Fields of it that others own at other values are reported in FieldsOwned; where that is
// owned as well, in Stalled.
func compose(ctx context.Context, t *takingOver, w apply.Writer, o status.Observation, now time.Time) (v1beta1.MCPServerStatus, status.Observation) {
	next := status.Compute(o, now)
	conflict := excludedFrom(ctx, t, w, statusRequest(t, status.Intent(t.Server, next))).Conflict
	if conflict == nil {
		return next, o
	}
	finding := status.Finding{
		Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse,
		Reason: refusalReasons[apply.ClassConflict], Message: describe(t.Snapshot, conflict),
	}
	o.Contested = append(o.Contested, finding)
	next = status.Compute(o, now)
	// Now that it reports them, it may be in conflict itself.
	conflict = excludedFrom(ctx, t, w, statusRequest(t, status.Intent(t.Server, next))).Conflict
	if conflict != nil && slices.ContainsFunc(conflict.Fields, isFieldsOwned) {
		finding.Condition, finding.Status, finding.Message = v1beta1.ConditionStalled, metav1.ConditionTrue, describe(t.Snapshot, conflict)
		o.Contested = append(o.Contested, finding)
		next = status.Compute(o, now)
	}
	return next, o
}

// tells returns what a status tells that was computed from an observation.
func (p *pass) tells(o *status.Observation, next *v1beta1.MCPServerStatus) toldStatus {
	before := p.state.told
	now := toldStatus{
		known: true, contested: sets.New[apply.ObjectRef](), take: before.take, missed: before.missed,
	}
	for _, f := range slices.Concat(o.Refusals, o.Contested, o.Delays) {
		if f.Condition == v1beta1.ConditionFieldsOwned {
			now.conflicts++
		}
	}
	for _, err := range p.refused {
		if refusal, ok := errors.AsType[*apply.Refusal](err); ok && (refusal.Class == apply.ClassConflict || refusal.Class == apply.ClassForeign) {
			now.contested.Insert(refusal.Object)
		}
	}
	if o.Unsettled || o.Doubtful {
		now.conflicts, now.contested = max(now.conflicts, before.conflicts), now.contested.Union(before.contested)
		if before.contested == nil && meta.IsStatusConditionFalse(next.Conditions, v1beta1.ConditionFieldsOwned) {
			now.contested = nil
		}
	}
	if taken := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionFieldsTaken); p.resolution.begun && taken != nil && taken.Status != metav1.ConditionUnknown {
		now.take, now.missed = p.resolution.record.Request, taken.Reason == v1beta1.ReasonClaimedAgain
	}
	return now
}

// isFieldsOwned reports whether a contested field is a part of the condition FieldsOwned.
func isFieldsOwned(f apply.FieldConflict) bool {
	return strings.HasPrefix(f.Path, fmt.Sprintf(".status.conditions[type=%q]", v1beta1.ConditionFieldsOwned))
}

// statusRequest returns a request to write the status, without its Excluded; nil names nothing.
func statusRequest(t *takingOver, config *toolhivev1beta1ac.MCPServerApplyConfiguration) apply.Request {
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
func excludedFrom(ctx context.Context, t *takingOver, w apply.Writer, req apply.Request) *apply.Excluded {
	if !t.reporting {
		theirs := heldByToolHive(req.Live)
		req.Yield = func(path fieldpath.Path) bool { return theirs(path) || !isCondition(path, v1beta1.ConditionTakenOver) }
	}
	excluded, err := apply.Exclude(w, req, wholeCondition)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell what others hold of the status")
		return &apply.Excluded{}
	}
	return excluded
}

// wholeCondition returns what is left out of the status with a contested field: with the status of a condition all of it,
// since the rest says what that status means.
func wholeCondition(path fieldpath.Path) fieldpath.Path {
	if takeover.IsCondition(path) && len(path) > 3 && path[3].FieldName != nil && *path[3].FieldName == "status" {
		return path[:3]
	}
	return path
}

// isCondition reports whether a path is that of a condition, or of a part of one.
func isCondition(path fieldpath.Path, conditionType string) bool {
	return takeover.IsCondition(path) &&
		path[:3].Equals(fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", conditionType)))
}

// statusWriter writes the status of MCPServers.
func (c *Controller) statusWriter() apply.Writer {
	return c.writerOf(managers.Status, managers.MCPServer)
}

// stored returns the status as the API server has it after a write. What was left out is there as it was before, and no news.
func stored(out apply.Outcome, written v1beta1.MCPServerStatus) v1beta1.MCPServerStatus {
	if server, ok := out.Live.(*v1beta1.MCPServer); ok && server != nil {
		return server.Status
	}
	return written
}
