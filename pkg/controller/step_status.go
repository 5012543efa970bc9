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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// observe collects what the status is computed from, but for the pods. It ends the pass where the namespace is being deleted: everything
// goes then, one object after the other, and each refusal would be reported.
func observe(p *pass, do *executor) bool {
	if slices.ContainsFunc(p.refused, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }) {
		return false
	}
	o := &p.observation
	o.Server, o.Deployment, o.StatefulSet, o.ProxyPods = p.Server, p.Deployment(), p.StatefulSet(), p.ProxyPods()
	o.Withheld = p.blocked || p.unwritten.HasAny(p.DeploymentRef(), p.StatefulSetRef())
	// A new proxy waits for its backend, and is not looked for until that takes a minute: by then there may be one without a label.
	if o.Withheld || len(o.Invalid)+len(o.Held) > 0 || o.StatefulSet != nil && p.Now.Sub(o.StatefulSet.CreationTimestamp.Time) > time.Minute {
		if do.reveal(p.DeploymentRef(), p.StatefulSetRef()); p.discovered {
			return false
		}
	}
	for i := range o.Held {
		o.Held[i].Message += " " + enforced(p.Snapshot)
	}
	o.HashesUnused = o.Deployment != nil && (p.blocked || len(o.Held) > 0 || p.unwritten.Has(p.DeploymentRef()))
	o.NoService, o.Astray = p.Service()
	if o.Deployment != nil && o.Withheld && slices.ContainsFunc(p.state.configMaps, func(ref apply.ObjectRef) bool {
		return !slices.Contains(o.Deployment.Template.ConfigMaps, ref.Name)
	}) {
		o.Unenforced = enforced(p.Snapshot)
	}
	o.LosesSessions = render.LosesSessions(o.ProxyPods, do.config.Options)
	return true
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
	o.Unreported = p.state.pending
	o.Notices = slices.Concat(o.Notices, p.altered, status.ForeignPods(p.Ask.ForeignPods(p.Key)))
	do.wakeIn(o.Grace(p.Now))
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

// compose computes the status, and returns it with the observation that it was computed from. The condition FieldsOwned reports the fields
// of the status that another manager owns with another value; where that condition is owned too, Stalled does.
func compose(ctx context.Context, t *takeoverState, w apply.Writer, o status.Observation, now time.Time) (v1beta1.MCPServerStatus, status.Observation) {
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
	// The condition that reports them may be in conflict itself.
	conflict = excludedFrom(ctx, t, w, statusRequest(t, status.Intent(t.Server, next))).Conflict
	itself := fmt.Sprintf(".status.conditions[type=%q]", v1beta1.ConditionFieldsOwned)
	if conflict != nil && slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool { return strings.HasPrefix(f.Path, itself) }) {
		finding.Condition, finding.Status, finding.Message = v1beta1.ConditionStalled, metav1.ConditionTrue, describe(t.Snapshot, conflict)
		o.Contested = append(o.Contested, finding)
		next = status.Compute(o, now)
	}
	return next, o
}

// tells returns what a status tells that was computed from an observation.
func tells(p *pass, o *status.Observation, next *v1beta1.MCPServerStatus) ownStatus {
	before := p.state.told
	now := ownStatus{known: true, contested: sets.New[apply.ObjectRef](), take: before.take, missed: before.missed}
	for _, err := range p.refused {
		if refusal, ok := errors.AsType[*apply.Refusal](err); ok && (refusal.Class == apply.ClassConflict || refusal.Class == apply.ClassForeign) {
			now.contested.Insert(refusal.Object)
		}
	}
	if o.Unsettled || o.Doubtful {
		now.contested = now.contested.Union(before.contested)
		if before.contested == nil && meta.IsStatusConditionFalse(next.Conditions, v1beta1.ConditionFieldsOwned) {
			now.contested = nil
		}
	}
	if taken := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionFieldsTaken); p.resolution.begun && taken != nil && taken.Status != metav1.ConditionUnknown {
		now.take, now.missed = p.resolution.record.Request, taken.Reason == v1beta1.ReasonClaimedAgain
	}
	return now
}

// stored returns the status as the API server has it after a write. What was left out is there as it was before.
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
	case len(o.Invalid)+len(o.Held)+len(o.Refusals)+len(o.Requests)+capped > 0:
		return true, 0 // These findings are reported whatever happens to the pods, and another pass may not know them.
	case len(o.Delays) > 0:
		return true, 0
	case slices.ContainsFunc(refused, isMomentary):
		return false, 0 // A write that lost a race, or got no answer, is made again at once, and the status reports what that brings about.
	case o.Server.Status.Phase == "":
		return true, 0
	}
	return wait == 0, wait
}

// observeRefusals adds to an observation what was refused, and what follows from it for the pods and for the report about them.
func observeRefusals(v *observed.Snapshot, refused []error, observation *status.Observation) {
	// A condition reports the first refusal and counts the others. An object with another owner comes first, in whatever order a pass finds them.
	rank := map[apply.Class]int{apply.ClassForeign: -1}
	inOrder := slices.SortedStableFunc(slices.Values(refused), func(a, b error) int { return rank[apply.ClassOf(a)] - rank[apply.ClassOf(b)] })
	observation.Refusals, observation.Delays = refusals(v, inOrder)
	observation.Unapplied = slices.ContainsFunc(refused, func(err error) bool { return concernsPods(v.Server, err) })
	observation.Unwritten = slices.ContainsFunc(refused, func(err error) bool { return isDue(v.Server, err) }) ||
		slices.ContainsFunc(refused, isMomentary) && meta.IsStatusConditionFalse(v.Server.Status.Conditions, v1beta1.ConditionReady)
	observation.Unsettled = slices.ContainsFunc(refused, func(err error) bool { return !endures(err) })
}

// isDoubtful reports whether a conflict that the status reports may stand without being known now: the write of the object was forbidden,
// or this operator has not tried it. About which objects the status of an operator before this one reports conflicts is not known, so any
// may be one of them.
func isDoubtful(server *v1beta1.MCPServer, before *ownStatus, refused []error, unattempted []apply.ObjectRef) bool {
	if !meta.IsStatusConditionFalse(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
		return false
	}
	may := func(ref apply.ObjectRef) bool { return before.contested == nil || before.contested.Has(ref) }
	return slices.ContainsFunc(unattempted, may) || slices.ContainsFunc(refused, func(err error) bool {
		refusal, ok := errors.AsType[*apply.Refusal](err)
		return ok && refusal.Class == apply.ClassForbidden && may(refusal.Object)
	})
}
