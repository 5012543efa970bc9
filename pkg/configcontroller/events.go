// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Actions of events about the objects that MCPServers refer to. All but the last are ToolHive's.
const (
	actionValidateConfig = "Validate"
	actionDeleteConfig   = "Delete"
	actionMigrateGrants  = "MigrateInboundGrants"
	actionApplyConfig    = "Apply"
)

// eventsOf returns events about what has changed in an object's conditions, each once.
func eventsOf(before, after []metav1.Condition) (events []status.Event) {
	began := func(conditionType string, is metav1.ConditionStatus) *metav1.Condition {
		now, was := meta.FindStatusCondition(after, conditionType), meta.FindStatusCondition(before, conditionType)
		if now == nil || now.Status != is || was != nil && was.Status == is {
			return nil
		}
		return now
	}
	if c := began(v1beta1.ConditionValid, metav1.ConditionFalse); c != nil {
		events = append(events, status.Event{
			Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonConfigInvalid, Action: actionValidateConfig, Note: c.Message,
		})
	}
	if c := began(v1beta1.ConditionValid, metav1.ConditionTrue); c != nil && meta.IsStatusConditionFalse(before, c.Type) {
		events = append(events, status.Event{
			Type: corev1.EventTypeNormal, Reason: v1beta1.EventReasonConfigValid, Action: actionValidateConfig, Note: c.Message,
		})
	}
	if c := began(v1beta1.ConditionDeletionBlocked, metav1.ConditionTrue); c != nil {
		events = append(events, status.Event{
			Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonDeletionBlocked, Action: actionDeleteConfig, Note: c.Message,
		})
	}
	if c := began(v1beta1.ConditionDeprecatedInboundGrantConfiguration, metav1.ConditionTrue); c != nil {
		events = append(events, status.Event{
			Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonInboundGrantsLegacyFieldsDeprecated, Action: actionMigrateGrants,
			Note: c.Message,
		})
	}
	return events
}

// tellConflict records an event about a conflict unless it was recorded before; nil ends it.
func (p *pass) tellConflict(conflict *apply.ConflictError) {
	text := ""
	if conflict != nil {
		text = p.describe(conflict)
	}
	p.mu.Lock()
	isNew := p.told[p.key] != text
	if p.told[p.key] = text; text == "" {
		delete(p.told, p.key)
	}
	p.mu.Unlock()
	if isNew && text != "" {
		p.recordEvents([]status.Event{{
			Type: corev1.EventTypeWarning, Reason: v1beta1.ReasonFieldManagerConflict, Action: actionApplyConfig, Note: text,
		}})
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

// recordEvents records events about the object.
func (p *pass) recordEvents(events []status.Event) {
	if p.config.Recorder == nil {
		return
	}
	regarding := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.live.GetNamespace(), Name: p.live.GetName(), UID: p.live.GetUID(), ResourceVersion: p.live.GetResourceVersion(),
	}}
	regarding.SetGroupVersionKind(p.row.GroupVersionKind)
	for _, event := range events {
		p.config.Recorder.Eventf(regarding, nil, event.Type, event.Reason, event.Action, "%s", status.Worded(event.Note))
	}
}
