// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// end finalizes an MCPServer, and records an event about what keeps the finalizer: nothing else reports that, as the status stays as it was.
func end(p *pass, do *executor) {
	do.takeovers.Release(p.Key) // Another finalizer may keep the MCPServer for long.
	do.configRollouts.Release(p.Key)
	p.state.published.Store(nil)
	do.forgetConflicts()
	finalize(p, do)
	if !p.answered {
		return // The event was recorded when the refusal began.
	}
	found, delays := refusals(p.Snapshot, p.refused)
	for _, f := range append(found, delays...) {
		do.events([]status.Event{{
			Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonDeletionHeld, Action: actionDelete, Note: f.Message,
		}})
	}
}

// finalize takes care of an MCPServer that is being deleted. The garbage collector deletes the children that
// refer to it; ours to delete are those that lost their reference, unless all were asked to stay behind. Then
// the finalizer is given up.
func finalize(p *pass, do *executor) {
	if !slices.Contains(p.Server.Finalizers, v1beta1.Finalizer) {
		return
	}
	if do.config.Takeover == TakeoverOff && takeover.Held(p.Server, "") && !managers.Owns(p.Server, managers.Finalizer, "") {
		return // ToolHive's operator finalizes it.
	}
	// A child that has lost its label is to be deleted, too. Which children are left has to be known first.
	if !do.reveal(p.state.places(p.Key)...) {
		return
	}
	deletion := decideDeletion(p.Snapshot, p.state.proved)
	for i, ref := range deletion.doomed {
		out := do.delete(ref, p.Object(ref))
		if len(p.refused) > 0 {
			return
		}
		if i == 0 && deletion.proves && out.Action == apply.ActionDeleted {
			p.state.proved = true
		}
	}
	if deletion.orphaned {
		p.state.orphaned = true
	}
	if deletion.collecting {
		return // The garbage collector removes its finalizer when it is done, and that is the event that brings us back here.
	}
	if others := holders(p.Server); len(others) > 0 {
		last := status.Held(p.Server, others, do.config.Clock.Now())
		do.write(managers.Status, apply.Request{Object: observed.ServerRef(p.Key), Config: last, Preconditions: apply.Preconditions{LetGo: true}})
	}
	none := toolhivev1beta1ac.MCPServer(p.Key.Name, p.Key.Namespace)
	out := do.write(managers.Finalizer, apply.Request{Object: observed.ServerRef(p.Key), Config: none, Preconditions: apply.Preconditions{LetGo: true}})
	if out.Err != nil {
		return
	}
	klog.FromContext(do.ctx).Info("Released the finalizer")
	if len(deletion.left) > 0 && !p.state.orphaned {
		event, command := leftBehind(p.Key, deletion.left)
		klog.FromContext(do.ctx).Info("Children without an owner reference stay behind", "delete", command)
		do.events([]status.Event{event})
	}
}

// holders returns the finalizers that keep an MCPServer, which is being deleted, besides ours and those of the garbage collector.
func holders(server *v1beta1.MCPServer) []string {
	return slices.DeleteFunc(slices.Clone(server.Finalizers), func(name string) bool {
		return name == v1beta1.Finalizer || name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
}

// deletion says what to do about an MCPServer that is being deleted.
type deletion struct {
	// doomed are the children that are ours to delete, in order, and left are those that stay behind.
	doomed, left []apply.ObjectRef
	// proves is set when the first of doomed has its reference, so that its deletion proves that none was to stay.
	proves bool
	// orphaned reports that the garbage collector was asked to leave the children behind.
	orphaned bool
	// collecting is set while the garbage collector is not done, so that the finalizer is to stay. The API server adds the
	// collector's own finalizers without an owner. An apply that gives up the last finalizer with an owner would remove them
	// too, and the garbage collector would not do what it was asked to.
	collecting bool
}

// decideDeletion decides which children without a reference to their MCPServer, which is being deleted, are deleted.
//
// If the children were asked to stay behind, the garbage collector takes the reference from each of them, and when it
// is done it removes the sign that it was asked to. Neither leaves a trace, in managedFields or elsewhere: a user who removes
// the references by hand leaves the same objects. So children none of which has a reference are left alone: to keep what was
// not meant to stay does less harm than the reverse. And since a cache may be behind the garbage collector, one of those that
// have a reference goes first. It would be deleted anyway, and if its reference is in fact gone, its resourceVersion is
// another one and the delete is refused. That is proved once: if the deletion of another child is refused after that, it
// alone is tried again, as often as that takes.
//
// A child that a predecessor of the same name has left behind, and that was never written for this one, stays in any case:
// the user may have asked then for it to stay.
func decideDeletion(v *observed.Snapshot, proved bool) deletion {
	orphans := slices.Contains(v.Server.Finalizers, metav1.FinalizerOrphanDependents)
	foreground := slices.Contains(v.Server.Finalizers, metav1.FinalizerDeleteDependents)
	d := deletion{orphaned: orphans, collecting: orphans || foreground}
	var attached, strays []apply.ObjectRef
	for ref, live := range v.Existing() {
		source, written := apply.ParseSource(live.GetAnnotations()[v1beta1.AnnotationSource])
		switch {
		case live.GetDeletionTimestamp() != nil:
		case metav1.IsControlledBy(live, v.Server):
			attached = append(attached, ref)
		case metav1.GetControllerOf(live) != nil || !v.IsOwned(ref, live):
		case written && source.UID != v.Server.UID: // for a predecessor
			d.left = append(d.left, ref)
		default:
			strays = append(strays, ref)
		}
	}
	switch {
	case len(strays) == 0:
	case orphans:
		d.left = append(d.left, strays...)
	case foreground, proved:
		d.doomed = strays
	case len(attached) > 0:
		first := slices.MinFunc(attached, func(a, b apply.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
		d.doomed, d.proves = append([]apply.ObjectRef{first}, strays...), true
	case slices.ContainsFunc(strays, func(ref apply.ObjectRef) bool {
		_, written := v.Object(ref).GetAnnotations()[v1beta1.AnnotationSource]
		return written || ref.Kind != managers.StatefulSet
	}):
		d.left = append(d.left, strays...)
	default:
		// Of the children that ToolHive has made, the StatefulSet never had a reference. Where no other one is left, the
		// garbage collector has deleted them, and none was to stay behind.
		d.doomed = strays
	}
	return d
}

// actionDelete is the action of events about the end of an MCPServer.
const actionDelete = "Delete"

// maxLeftBehind is how long the list of children that outlive their MCPServer may be in an event, in bytes. The API server
// takes 1024 in all.
const maxLeftBehind = 600

// leftBehind returns an event that lists the children that outlive the MCPServer, as many as it has room for, and the command
// that deletes all of them.
func leftBehind(server cache.ObjectName, left []apply.ObjectRef) (event status.Event, command string) {
	names := make([]string, 0, len(left))
	for _, ref := range left {
		names = append(names, ref.String())
	}
	slices.Sort(names)
	deleting := func(names []string) string {
		return shell.Command(append([]string{"kubectl", "delete", "-n", server.Namespace}, names...)...)
	}
	some, more := names, ""
	for len(strings.Join(some, " ")) > maxLeftBehind {
		some = some[:len(some)-1]
		more = fmt.Sprintf(" (+%d more objects, which the operator's log names)", len(names)-len(some))
	}
	return status.Event{
		Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonChildrenLeftBehind, Action: actionDelete,
		Note: fmt.Sprintf("%d children stay behind: none had an owner reference to this MCPServer, so either it was deleted with "+
			"--cascade=orphan or the references were removed before. To delete them: %s%s", len(names), deleting(some), more),
	}, deleting(names)
}
