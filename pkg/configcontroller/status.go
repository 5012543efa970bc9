// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// report writes the status, except the fields that another field manager owns at other values, and records events about what is
// new in it. users are the objects that keep this one from being deleted.
func (p *pass) report(ctx context.Context, users []configs.Named) {
	intent, conditions, known := p.statusIntent(users, nil)
	if !known {
		return
	}
	w := p.statusWriter()
	req := apply.Request{
		Object: p.ref, Config: intent, Observed: apply.Observed{Live: p.live},
		Ownership: apply.Ownership{Inherit: p.inheritance()}, Preconditions: apply.Preconditions{LetGo: len(users) > 0},
	}
	req.Excluded = takeover.Exclude(ctx, w, req)
	if conflict := req.Excluded.Conflict; conflict != nil {
		req.Config, conditions, _ = p.statusIntent(users, conflict)
		req.Excluded = takeover.Exclude(ctx, w, req) // The condition that reports it may be contested itself.
	}
	before := conditionsOf(p.live)
	if p.state.pending = conditions; p.apply(ctx, w, req) {
		p.state.pending = nil
		p.recordEvents(eventsOf(before, conditionsOf(p.live))...)
		p.tellConflict(req.Excluded.Conflict)
	} else if req.Excluded.Conflict != nil {
		p.tellConflict(req.Excluded.Conflict)
	}
}

// hold writes nothing, and reports what is contested.
func (p *pass) hold(ctx context.Context) {
	intent, _, known := p.statusIntent(nil, nil)
	if !known {
		return
	}
	excluded := takeover.Exclude(ctx, p.statusWriter(), apply.Request{Object: p.ref, Config: intent, Observed: apply.Observed{Live: p.live}})
	if excluded.Conflict != nil {
		p.Applier.Hold(ctx, excluded.Conflict, p.live)
	} else {
		p.Applier.Forget(p.ref) // The conflict is over. The cache shows our last write, so none is forgotten that is not seen yet.
	}
	p.tellConflict(excluded.Conflict)
}

// finalizers returns the object with these finalizers and nothing else.
func (p *pass) finalizers(finalizers ...string) runtime.ApplyConfiguration {
	return configs.KindNamed(p.key.kind).WithFinalizers(p.key.Namespace, p.key.Name, finalizers...)
}

func (p *pass) statusWriter() apply.Writer {
	if p.row.IsGroup() {
		return p.writer(managers.GroupStatus)
	}
	return p.writer(managers.ConfigStatus)
}

// statusIntent returns the status of the object, with its conditions. users are the objects that keep it from being deleted, and
// conflict is one about it; both may be nil. known is false while the members of a group are not known.
func (p *pass) statusIntent(users []configs.Named, conflict *apply.ConflictError) (
	intent runtime.ApplyConfiguration, conditions []metav1.Condition, known bool,
) {
	complete := func(findings []status.Finding) []metav1.Condition {
		if conflict != nil {
			findings = append(findings, finding(v1beta1.ConditionFieldsOwned, false, v1beta1.ReasonFieldManagerConflict, p.describe(conflict)))
		}
		return status.Conditions(conditionsOf(p.live), p.state.pending, p.live.GetGeneration(), p.Clock.Now(), findings...)
	}
	if p.row.IsGroup() {
		next, listed, known := p.groupStatus()
		if !known {
			return nil, nil, false
		}
		conditions = complete([]status.Finding{listed})
		next.WithConditions(status.ConditionConfigs(conditions)...)
		return toolhivev1beta1ac.MCPGroup(p.key.Name, p.key.Namespace).WithStatus(next), conditions, true
	}
	next, findings := configStatus(p.live, users)
	conditions = complete(findings)
	next.WithConditions(status.ConditionConfigs(conditions)...)
	return configs.KindNamed(p.key.kind).WithStatus(p.key.Namespace, p.key.Name, next), conditions, true
}

// conditionsOf returns the conditions of an object that MCPServers refer to.
func conditionsOf(live metav1.Object) []metav1.Condition {
	if group, ok := live.(*v1beta1.MCPGroup); ok {
		return group.Status.Conditions
	}
	if config := configs.Read(live); config != nil {
		return config.Status.Conditions
	}
	return nil
}

func finding(conditionType string, holds bool, reason, message string) status.Finding {
	is := map[bool]metav1.ConditionStatus{false: metav1.ConditionFalse, true: metav1.ConditionTrue}[holds]
	return status.Finding{Condition: conditionType, Status: is, Reason: reason, Message: message}
}

// configStatus returns the status of a configuration without its conditions, and the findings for these. While the spec is invalid, the hash
// of the last valid one stays, as ToolHive's does. Unlike there, observedGeneration follows and Stalled is True: to kstatus it has failed.
func configStatus(live metav1.Object, users []configs.Named) (next *toolhivev1beta1ac.ConfigStatusApplyConfiguration, findings []status.Finding) {
	config := configs.Read(live)
	valid := config.Status.ConfigHash
	err := config.Validate()
	hash, unhashed := config.Hash()
	if err = cmp.Or(err, unhashed); err != nil {
		failed := config.Kind.Invalid
		switch {
		case config.TooLarge():
			failed = v1beta1.ReasonTooLarge
		case errors.Is(err, configs.ErrEnterprise):
			failed = v1beta1.ReasonEnterpriseRequired
		}
		findings = append(findings, finding(v1beta1.ConditionValid, false, failed, err.Error()), finding(v1beta1.ConditionStalled, true, failed, err.Error()))
	} else {
		valid = hash
		findings = append(findings, finding(v1beta1.ConditionValid, true, config.Kind.Valid, "Spec validation passed"))
	}
	if len(users) > 0 {
		findings = append(findings, finding(v1beta1.ConditionDeletionBlocked, true, v1beta1.ReasonReferencedByWorkloads, blockedBy(users)))
	}
	for _, advisory := range configs.Advisories(live) {
		findings = append(findings, finding(advisory.Type, advisory.Holds, advisory.Reason, advisory.Message))
	}
	if next = toolhivev1beta1ac.ConfigStatus().WithObservedGeneration(live.GetGeneration()); valid != "" {
		next.WithConfigHash(valid)
	}
	return next, findings
}

// blockedBy says in ToolHive's words what keeps an object from being deleted. The list is bounded.
func blockedBy(users []configs.Named) string {
	slices.SortFunc(users, func(a, b configs.Named) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	items := make([]string, 0, len(users))
	for _, user := range users {
		items = append(items, "{"+user.Kind+" "+user.Name+"}")
	}
	shown, more := status.First(items, " ")
	return "Cannot delete: referenced by workloads: [" + strings.Join(shown, " ") + "]" + more
}

// groupStatus returns the status of a group without its conditions, and the finding for these. known is false as long as a cache that
// may have some of its members may still fill. The members of a kind that the API server does not list for now are those of before.
func (p *pass) groupStatus() (next *toolhivev1beta1ac.MCPGroupStatusApplyConfiguration, listed status.Finding, known bool) {
	members := map[string][]string{} // by kind
	for _, user := range p.referring() {
		members[user.Kind] = append(members[user.Kind], user.Name)
	}
	group, ok := p.live.(*v1beta1.MCPGroup)
	if !ok {
		return nil, listed, false
	}
	before := map[string][]string{remoteProxyKind: group.Status.RemoteProxies, entryKind: group.Status.Entries}
	var forbidden, failing []string
	for _, store := range p.referrersIn(p.scope) {
		if !store.refersTo(configs.Group) {
			continue
		}
		switch failure := store.Failure(); {
		case failure == observed.Listable && !store.HasSynced():
			return nil, listed, false
		case failure == observed.ListForbidden:
			forbidden = append(forbidden, store.kind)
		case failure == observed.ListFails:
			failing = append(failing, store.kind)
			members[store.kind] = slices.Clone(before[store.kind])
		}
	}
	listed = finding(v1beta1.ConditionMCPServersChecked, true, v1beta1.ReasonListMCPServersCheckSucceeded, "Listed the members of the group")
	if len(forbidden)+len(failing) > 0 {
		listed.Status, listed.Reason = metav1.ConditionFalse, v1beta1.ReasonListMCPServersCheckFailed
	}
	if len(forbidden) > 0 {
		listed.Message += ", but for those of kinds that the operator is not allowed to list: " + strings.Join(forbidden, ", ")
	}
	if len(failing) > 0 {
		listed.Message += ", but for those of kinds that the API server does not list for now, which are shown as they were: " + strings.Join(failing, ", ")
	}
	for _, names := range members {
		slices.Sort(names)
	}
	next = toolhivev1beta1ac.MCPGroupStatus().WithPhase(v1beta1.MCPGroupPhaseReady).WithObservedGeneration(p.live.GetGeneration())
	// Zero values are left out: the API treats them as absent.
	if names := members[v1beta1.MCPServerKind]; len(names) > 0 {
		next.WithServers(names...).WithServerCount(int32(len(names))) //nolint:gosec // An object holds no more names.
	}
	if names := members[remoteProxyKind]; len(names) > 0 {
		next.WithRemoteProxies(names...).WithRemoteProxyCount(int32(len(names))) //nolint:gosec // An object holds no more names.
	}
	if names := members[entryKind]; len(names) > 0 {
		next.WithEntries(names...).WithEntryCount(int32(len(names))) //nolint:gosec // An object holds no more names.
	}
	return next, listed, true
}

// reportedChanges are the changes of conditions that events report. The reasons and actions are ToolHive's.
var reportedChanges = []struct {
	condition string
	is        metav1.ConditionStatus
	eventType string
	reason    string
	action    string
}{
	{v1beta1.ConditionValid, metav1.ConditionFalse, corev1.EventTypeWarning, v1beta1.EventReasonConfigInvalid, "Validate"},
	{v1beta1.ConditionValid, metav1.ConditionTrue, corev1.EventTypeNormal, v1beta1.EventReasonConfigValid, "Validate"},
	{v1beta1.ConditionDeletionBlocked, metav1.ConditionTrue, corev1.EventTypeWarning, v1beta1.EventReasonDeletionBlocked, "Delete"},
	{
		v1beta1.ConditionDeprecatedInboundGrantConfiguration, metav1.ConditionTrue, corev1.EventTypeWarning,
		v1beta1.EventReasonInboundGrantsLegacyFieldsDeprecated, "MigrateInboundGrants",
	},
}

// eventsOf returns events about what has changed in an object's conditions, each once. A Normal one reports that a problem is over.
func eventsOf(before, after []metav1.Condition) (events []status.Event) {
	for _, change := range reportedChanges {
		now, was := meta.FindStatusCondition(after, change.condition), meta.FindStatusCondition(before, change.condition)
		if now != nil && now.Status == change.is && (was == nil || was.Status != change.is) &&
			(change.eventType != corev1.EventTypeNormal || was != nil && was.Status == metav1.ConditionFalse) {
			events = append(events, status.Event{Type: change.eventType, Reason: change.reason, Action: change.action, Note: now.Message})
		}
	}
	return events
}

// tellConflict records an event about a conflict unless it was recorded before; nil ends it.
func (p *pass) tellConflict(conflict *apply.ConflictError) {
	before := p.state.conflict
	if p.state.conflict = ""; conflict == nil {
		return
	}
	if p.state.conflict = p.describe(conflict); p.state.conflict != before {
		p.recordEvents(status.Event{
			Type: corev1.EventTypeWarning, Reason: v1beta1.ReasonFieldManagerConflict, Action: "Apply", Note: p.state.conflict,
		})
	}
}

// describe names the owners of the object's contested fields, and how to end the conflict.
func (p *pass) describe(c *apply.ConflictError) string {
	how, words := takeover.EndConflict(c.Object, p.live)
	if len(words) > 0 {
		how += ": " + shell.Kubectl(words...)
	}
	return takeover.Sides(c) + ". " + how + "."
}

func (p *pass) recordEvents(events ...status.Event) {
	if p.Recorder == nil {
		return
	}
	regarding := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.live.GetNamespace(), Name: p.live.GetName(), UID: p.live.GetUID(), ResourceVersion: p.live.GetResourceVersion(),
	}}
	regarding.SetGroupVersionKind(p.row.GroupVersionKind)
	for _, event := range events {
		p.Recorder.Eventf(regarding, nil, event.Type, event.Reason, event.Action, "%s", status.Worded(event.Note))
	}
}
