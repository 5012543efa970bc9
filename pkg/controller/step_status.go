// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// observe collects what the status is computed from, but for the pods. It ends the pass where the namespace is being deleted: everything
// goes then, one object after the other, and each refusal would be reported.
func observe(p *pass, do *executor) bool {
	if slices.ContainsFunc(p.refused, namespaceEnds) {
		return false
	}
	o := &p.observation
	for i := range o.Held {
		o.Held[i].Message += " " + enforced(p.Snapshot)
	}
	o.Withheld = p.blocked || p.unwritten.HasAny(p.DeploymentRef(), p.StatefulSetRef())
	o.HashesUnused = p.Deployment() != nil && (p.blocked || len(o.Held) > 0 || p.unwritten.Has(p.DeploymentRef()))
	o.Server, o.Deployment, o.StatefulSet, o.ProxyPods = p.Server, p.Deployment(), p.StatefulSet(), p.ProxyPods()
	o.NoService = !p.HasService()
	o.LosesSessions = render.LosesSessions(o.ProxyPods, do.config.Options)
	return true
}

// namespaceEnds reports whether a write was refused because its namespace is being deleted.
func namespaceEnds(refusal error) bool {
	return apierrors.HasStatusCause(refusal, corev1.NamespaceTerminatingCause)
}

func reportStatus(p *pass, do *executor) {
	o := p.observation
	observeRefusals(p.Snapshot, p.refused, &o)
	o.Contested, o.Doubtful = intrusion(p.Snapshot, p.refused), isDoubtful(p.Server, &p.state.told, p.refused, p.unattempted)
	tellTurn(p, &o)
	tell, wake := isWorthTelling(&o, p.refused, len(p.capped), p.state.observationLeft(p.Now, o.Backend, o.Proxy))
	if !tell {
		do.wakeIn(wake)
		return
	}
	o.Unreported, o.Conflicts = p.state.pending, p.state.told.conflicts
	o.Notices = append(o.Notices, unsharedSessions(o)...)
	p.takeover.reporting = true
	next, o := compose(do.ctx, &p.takeover, do.statusWriter(), o, do.config.Clock.Now())
	if wait := p.state.statusBackoff.Left(do.config.Clock.Now()); wait > 0 && p.state.statusBackoff.again(p.Server, next) {
		do.wakeIn(wait)
		return
	}
	out := do.write(managers.Status, apply.Request{Object: observed.ServerRef(p.Key), Config: status.Intent(p.Server, next)})
	p.state.notePending(out.Err, next.Conditions)
	if out.Err == nil {
		p.state.told = tells(p, &o, &next)
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		if p.state.statusBackoff.again(p.Server, next) {
			klog.FromContext(do.ctx).Info("Another process writes the status under the same field manager: are two operators running?",
				"fieldManager", managers.Status, "nextWriteIn", p.state.statusBackoff.Begin(do.config.Clock.Now(), statusBounds))
		}
		p.state.statusBackoff.written = fingerprint(p.Server, next)
		do.events(status.NewEvents(p.Server.Status, stored(out, next)))
	}
}

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
func tells(p *pass, o *status.Observation, next *v1beta1.MCPServerStatus) toldStatus {
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
	excluded, err := apply.Exclude(w, req, takeover.WholeCondition)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell what others hold of the status")
		return &apply.Excluded{}
	}
	return excluded
}

// isCondition reports whether a path is that of a condition, or of a part of one.
func isCondition(path fieldpath.Path, conditionType string) bool {
	return takeover.IsCondition(path) &&
		path[:3].Equals(fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", conditionType)))
}

// stored returns the status as the API server has it after a write. What was left out is there as it was before, and no news.
func stored(out apply.Outcome, written v1beta1.MCPServerStatus) v1beta1.MCPServerStatus {
	if server, ok := out.Live.(*v1beta1.MCPServer); ok && server != nil {
		return server.Status
	}
	return written
}

// isWorthTelling reports whether an observation is worth a status: it is not while a change is about to be observed. capped is
// how many numbers of replicas do not stay, and wait is how long the controllers of workloads may take to look at a change. wake
// is when to look again.
func isWorthTelling(o *status.Observation, refused []error, capped int, wait time.Duration) (tell bool, wake time.Duration) {
	switch {
	case o.Server.Status.Phase == "", len(o.Invalid)+len(o.Held)+len(o.Refusals)+len(o.Requests)+capped > 0:
		return true, 0 // That is reported whatever happens to the pods, and another pass may not know it.
	case len(o.Delays) > 0:
		return true, 0
	case slices.ContainsFunc(refused, isMomentary):
		return false, 0 // A write that lost a race, or got no answer, is made again at once, and what it brings about is the news.
	}
	return wait == 0, wait
}

// isNews reports whether a refusal is to be reported to the user by now.
func isNews(err error) bool {
	refusal, ok := errors.AsType[*apply.Refusal](err)
	return ok && refusal.News()
}

// isUnanswered reports whether a refusal says nothing about what was asked for: another answer may come without any change.
func isUnanswered(err error) bool {
	switch apply.ClassOf(err) {
	case apply.ClassMoved, apply.ClassTransient, apply.ClassForbidden:
		return true
	}
	return false
}

// observeRefusals adds to an observation what was refused, and what follows from it for the pods and for the report about them.
func observeRefusals(v *observed.Snapshot, refused []error, observation *status.Observation) {
	observation.Refusals, observation.Delays = refusals(v, refused)
	observation.Unapplied = slices.ContainsFunc(refused, func(err error) bool { return concernsPods(v.Server, err) })
	observation.Unwritten = slices.ContainsFunc(refused, func(err error) bool { return isDue(v.Server, err) }) ||
		slices.ContainsFunc(refused, isMomentary) && meta.IsStatusConditionFalse(v.Server.Status.Conditions, v1beta1.ConditionReady)
	for _, err := range refused {
		observation.Unsettled = observation.Unsettled || apply.Policies()[apply.ClassOf(err)].Passes
	}
}

// isMomentary reports whether a refusal should be over when the write is made again, which is at once.
func isMomentary(err error) bool {
	class := apply.ClassOf(err)
	return !isNews(err) && (class == apply.ClassMoved || class == apply.ClassTransient)
}

// isDue reports whether a refusal keeps the spec from being carried out: any but the first of a moment at a generation of the
// MCPServer that the status reports already.
func isDue(server *v1beta1.MCPServer, err error) bool {
	return isNews(err) || server.Status.ObservedGeneration != server.Generation
}

// concernsPods reports whether pods are not as they should be because of a refusal.
func concernsPods(server *v1beta1.MCPServer, err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != managers.Deployment && refusal.Object.Kind != managers.StatefulSet {
		return false
	}
	if !isDue(server, err) {
		return false // A race was lost, or an answer, and the spec is unchanged.
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}

// statusBounds bound how often a status is written again that another process overwrites.
var statusBounds = priorityqueue.Bounds{Shortest: time.Second, Longest: time.Minute}

// statusBackoff slows down the writes of a status that another process under the name of our field manager writes too: an operator that
// has lost its lease and does not know it yet, or one of another installation. The API server sees no conflict then, and two that see
// different things would overwrite each other as fast as they can. A new status is written at once; one that was written before and
// has been overwritten since, at once the first time, and then after waits that grow.
type statusBackoff struct {
	priorityqueue.Wait
	// written is the fingerprint of the status that this process has written last; 0 for none.
	written uint64
}

// again reports whether a status is the one that this process has written last, and is not there any more.
func (b *statusBackoff) again(server *v1beta1.MCPServer, next v1beta1.MCPServerStatus) bool {
	return b.written != 0 && b.written == fingerprint(server, next) && b.written != fingerprint(server, server.Status)
}

var statusSeed = maphash.MakeSeed()

// fingerprint identifies our part of a status, without the times at which its conditions changed: they change with each overwrite.
func fingerprint(server *v1beta1.MCPServer, of v1beta1.MCPServerStatus) uint64 {
	config := status.Intent(server, of)
	owned := v1beta1.OwnedConditions()
	conditions := config.Status.Conditions[:0]
	for _, condition := range config.Status.Conditions {
		if slices.Contains(owned, *condition.Type) {
			condition.LastTransitionTime = nil
			conditions = append(conditions, condition)
		}
	}
	config.Status.Conditions = conditions
	text, err := json.Marshal(config.Status)
	if err != nil {
		return 0 // Texts and numbers alone can be encoded.
	}
	return maphash.Bytes(statusSeed, text)
}
