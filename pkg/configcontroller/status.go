// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/printable"
	"github.com/freehold-dev/freehold/pkg/status"
)

// finalizers returns the object with these finalizers and nothing else.
func (p *pass) finalizers(finalizers ...string) runtime.ApplyConfiguration {
	return configs.KindNamed(p.key.kind).WithFinalizers(p.key.Namespace, p.key.Name, finalizers...)
}

// statusIntent returns the status of the object, and the field manager that writes it. users are the objects that keep it from
// being deleted, and contested describes a conflict about it; both are empty for none. known is false while the members of a
// group are not known.
func (p *pass) statusIntent(users []string, contested string) (intent runtime.ApplyConfiguration, manager string, known bool) {
	now := p.pending.since(p.ref, p.config.Clock.Now())
	if !p.row.IsGroup() {
		next := configStatusConfig(p.live, users, contested, now)
		return configs.KindNamed(p.key.kind).WithStatus(p.key.Namespace, p.key.Name, next), managers.ConfigStatus, true
	}
	members, known := p.members()
	if !known {
		return nil, managers.GroupStatus, false
	}
	next := groupStatusConfig(p.live, members, contested, now)
	return toolhivev1beta1ac.MCPGroup(p.key.Name, p.key.Namespace).WithStatus(next), managers.GroupStatus, true
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

// configStatusConfig returns the status of a config. The hash and the generation of the last valid spec stay while the spec is invalid.
func configStatusConfig(live metav1.Object, users []string, contested string, now time.Time) *toolhivev1beta1ac.ConfigStatusApplyConfiguration {
	config := configs.Read(live)
	valid, generation := config.Status.ConfigHash, config.Status.ObservedGeneration
	var conditions []metav1.Condition
	add := func(conditionType string, holds bool, reason, message string) {
		conditions = append(conditions, conditionOf(live, conditionType, holds, reason, message, now))
	}
	err := config.Validate()
	hash, unhashed := config.Hash()
	if err = cmp.Or(err, unhashed); err != nil {
		failed := config.Kind.Invalid
		if errors.Is(err, configs.ErrEnterprise) {
			failed = v1beta1.ReasonEnterpriseRequired
		}
		add(v1beta1.ConditionValid, false, failed, err.Error())
	} else {
		valid, generation = hash, live.GetGeneration()
		add(v1beta1.ConditionValid, true, config.Kind.Valid, "Spec validation passed")
	}
	if len(users) > 0 {
		add(v1beta1.ConditionDeletionBlocked, true, v1beta1.ReasonReferencedByWorkloads, blockedBy(users))
	}
	for _, advisory := range configs.Advisories(live) {
		add(advisory.Type, advisory.Holds, advisory.Reason, advisory.Message)
	}
	if contested != "" {
		add(v1beta1.ConditionFieldsOwned, false, v1beta1.ReasonFieldManagerConflict, contested)
	}
	next := toolhivev1beta1ac.ConfigStatus().WithConditions(status.ConditionConfigs(conditions)...)
	if valid != "" {
		next.WithConfigHash(valid)
	}
	if generation != 0 {
		next.WithObservedGeneration(generation)
	}
	return next
}

// blockedBy says in ToolHive's words what keeps an object from being deleted. The list is bounded.
func blockedBy(users []string) string {
	items := make([]string, 0, len(users))
	for _, user := range users {
		items = append(items, "{"+user+"}")
	}
	shown, more := status.First(items, " ")
	return "Cannot delete: referenced by workloads: [" + strings.Join(shown, " ") + "]" + more
}

// conditionOf returns a condition of an object, with the time since which it has its status.
func conditionOf(live metav1.Object, conditionType string, holds bool, reason, message string, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: printable.Bound(printable.Text(status.Worded(message)), status.MaxMessage),
		ObservedGeneration: live.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	if was := meta.FindStatusCondition(conditionsOf(live), c.Type); was != nil && was.Status == c.Status && !was.LastTransitionTime.IsZero() {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// members are the names of a group's members, sorted.
type members struct {
	servers, remoteProxies, entries []string
	// forbidden are the kinds that the operator is not allowed to list, and failing those that the API server does not list for now.
	// Of the latter the members are those that were known last.
	forbidden, failing []string
}

// groupStatusConfig returns the status of a group.
func groupStatusConfig(live metav1.Object, of members, contested string, now time.Time) *toolhivev1beta1ac.MCPGroupStatusApplyConfiguration {
	reason, message := v1beta1.ReasonListMCPServersCheckSucceeded, "Listed the members of the group"
	checked := len(of.forbidden)+len(of.failing) == 0
	if !checked {
		reason = v1beta1.ReasonListMCPServersCheckFailed
	}
	if len(of.forbidden) > 0 {
		message += ", but for those of kinds that the operator is not allowed to list: " + strings.Join(of.forbidden, ", ")
	}
	if len(of.failing) > 0 {
		message += ", but for those of kinds that the API server does not list for now, which are shown as they were: " + strings.Join(of.failing, ", ")
	}
	conditions := []metav1.Condition{conditionOf(live, v1beta1.ConditionMCPServersChecked, checked, reason, message, now)}
	if contested != "" {
		conditions = append(conditions, conditionOf(live, v1beta1.ConditionFieldsOwned, false, v1beta1.ReasonFieldManagerConflict, contested, now))
	}
	config := toolhivev1beta1ac.MCPGroupStatus().WithPhase(v1beta1.MCPGroupPhaseReady).WithObservedGeneration(live.GetGeneration()).
		WithConditions(status.ConditionConfigs(conditions)...)
	// Zero values are left out: the API treats them as absent.
	if n := len(of.servers); n > 0 {
		config.WithServers(of.servers...).WithServerCount(int32(n))
	}
	if n := len(of.remoteProxies); n > 0 {
		config.WithRemoteProxies(of.remoteProxies...).WithRemoteProxyCount(int32(n))
	}
	if n := len(of.entries); n > 0 {
		config.WithEntries(of.entries...).WithEntryCount(int32(n))
	}
	return config
}

// members returns the members of the group. known is false as long as a cache that may have some may still fill, and nothing is known
// to keep it from that.
func (p *pass) members() (of members, known bool) {
	if known = p.referrers.known(p.scope); !known {
		return of, false
	}
	for _, user := range p.referring() {
		switch user.kind {
		case v1beta1.MCPServerKind:
			of.servers = append(of.servers, user.name)
		case remoteProxyKind:
			of.remoteProxies = append(of.remoteProxies, user.name)
		case entryKind:
			of.entries = append(of.entries, user.name)
		}
	}
	of.forbidden, of.failing = p.referrers.unlisted(p.scope, observed.ListForbidden), p.referrers.unlisted(p.scope, observed.ListFails)
	if group, ok := p.live.(*v1beta1.MCPGroup); ok {
		if slices.Contains(of.failing, remoteProxyKind) {
			of.remoteProxies = slices.Clone(group.Status.RemoteProxies)
		}
		if slices.Contains(of.failing, entryKind) {
			of.entries = slices.Clone(group.Status.Entries)
		}
	}
	for _, names := range [][]string{of.servers, of.remoteProxies, of.entries} {
		slices.Sort(names)
	}
	return of, true
}
