// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// finalize takes care of an MCPServer that is being deleted. The garbage collector deletes the children that
// refer to it; ours to delete are those that lost their reference, unless all were asked to stay behind. Then
// the finalizer is given up.
func (p *pass) finalize(ctx context.Context) {
	if !slices.Contains(p.server.Finalizers, v1beta1.Finalizer) {
		return
	}
	if p.config.Takeover == TakeoverOff && takeover.Held(p.server, "") && ownership.ApplyEntry(p.server, managers.Finalizer, "") == nil {
		return // It is for ToolHive's operator to do.
	}
	if err := p.revealAll(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read what may be left of the children")
		p.retryAs(retryBackoff)
		return
	}
	doomed, left := p.ownerlessChildren()
	for _, ref := range doomed {
		p.delete(ctx, ref, p.object(ref))
		if len(p.refused) > 0 {
			return
		}
	}
	if slices.Contains(p.server.Finalizers, metav1.FinalizerOrphanDependents) {
		p.adoptions.orphans(p.key)
	}
	if slices.ContainsFunc(p.server.Finalizers, isCollectors) {
		// The API server adds these without an owner. An apply that gives up the last finalizer that has an owner
		// would take them along, and the garbage collector would not do what it was asked to. It removes them when
		// it is done, and that is the event that brings us back here.
		return
	}
	out := p.write(ctx, managers.Finalizer, apply.Request{
		Object: serverRef(p.key), Config: toolhivev1beta1ac.MCPServer(p.key.Name, p.key.Namespace), LetGo: true,
	})
	if out.Err == nil {
		klog.FromContext(ctx).Info("Released the finalizer")
		p.tellLeftBehind(ctx, left)
	}
}

// revealAll reads each name of a child that no informer shows, once: what ToolHive made without labels is to be taken over like
// the rest, and a child that has lost its label is to go with its MCPServer.
func (p *pass) revealAll(ctx context.Context) error {
	for _, ref := range slices.Concat(fixed(p.key), p.configNames.get(p.key)) {
		if p.children[ref] != nil {
			continue
		}
		found, err := p.readHidden(ctx, ref)
		switch {
		case err != nil:
			return err
		}
		if found != nil {
			p.children[ref] = found
		}
	}
	return nil
}

// ownerlessChildren returns the children without a reference to their MCPServer, which is being deleted: those that are ours to
// delete, in order, and those that stay behind.
//
// If the children were asked to stay behind, the garbage collector takes the reference from each of them, and when it
// is done it removes the sign that it was asked to. Neither leaves a trace, in managedFields or elsewhere: whoever takes the
// references away by hand leaves the same objects. So children none of which has a reference are left alone: to keep
// what was not meant to stay does less harm than the reverse. And since a cache may be behind the garbage collector,
// one of those that have a reference goes first. It would be deleted anyway, and if its reference is gone in truth, its
// resourceVersion is another one and the delete is refused.
//
// A child that a predecessor of the same name has left behind, and that was never written for this one, stays in any case:
// that it was to stay may have been asked for then.
func (p *pass) ownerlessChildren() (doomed, left []apply.ObjectRef) {
	var attached, strays []apply.ObjectRef
	for _, ref := range p.refs {
		live := p.object(ref)
		switch {
		case live == nil || live.GetDeletionTimestamp() != nil:
		case metav1.IsControlledBy(live, p.server):
			attached = append(attached, ref)
		case metav1.GetControllerOf(live) != nil || !p.isOwned(ref, live):
		case p.inherited(live):
			left = append(left, ref)
		default:
			strays = append(strays, ref)
		}
	}
	switch {
	case len(strays) == 0, slices.Contains(p.server.Finalizers, metav1.FinalizerOrphanDependents):
		return nil, append(left, strays...)
	case slices.Contains(p.server.Finalizers, metav1.FinalizerDeleteDependents):
		return strays, left
	case len(attached) == 0:
		// Of the children that ToolHive has made, the StatefulSet never had a reference. Where no other one is left, the
		// garbage collector has deleted them, and none was to stay behind.
		if slices.ContainsFunc(strays, func(ref apply.ObjectRef) bool { return !neverAttached(ref, p.object(ref)) }) {
			return nil, append(left, strays...)
		}
		return strays, left
	default:
		first := slices.MinFunc(attached, func(a, b apply.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
		return append([]apply.ObjectRef{first}, strays...), left
	}
}

// inherited reports whether a child was written for a predecessor of the MCPServer and not for this one.
func (p *pass) inherited(live metav1.Object) bool {
	source, ok := apply.ParseSource(live.GetAnnotations()[v1beta1.AnnotationSource])
	return ok && source.UID != p.server.UID
}

// maxLeftBehind is how long the list of children that outlive their MCPServer may be in an event, in bytes. The API server
// takes 1024 in all.
const maxLeftBehind = 600

// tellLeftBehind says which children outlive the MCPServer, and how to delete them, unless the user was seen to ask for it.
func (p *pass) tellLeftBehind(ctx context.Context, left []apply.ObjectRef) {
	if len(left) == 0 || p.adoptions.asked(p.key) {
		return
	}
	names := make([]string, 0, len(left))
	for _, ref := range left {
		names = append(names, ref.String())
	}
	slices.Sort(names)
	command := func(names []string) string {
		return shell.Command(append([]string{"kubectl", "delete", "-n", p.key.Namespace}, names...)...)
	}
	klog.FromContext(ctx).Info("Children without an owner reference stay behind", "delete", command(names))
	if p.config.Recorder == nil {
		return
	}
	some, more := names, ""
	for len(strings.Join(some, " ")) > maxLeftBehind {
		some = some[:len(some)-1]
		more = fmt.Sprintf(" (+%d more objects, which the operator's log names)", len(names)-len(some))
	}
	p.config.Recorder.Eventf(p.server, nil, corev1.EventTypeWarning, v1beta1.EventReasonChildrenLeftBehind, "Delete",
		"%d children stay behind: none had an owner reference to this MCPServer, so either it was deleted with --cascade=orphan "+
			"or the references were removed before. To delete them: %s%s", len(names), command(some), more)
}

// neverAttached tells whether a child is a StatefulSet of ToolHive's that our writer has not written yet.
func neverAttached(ref apply.ObjectRef, live metav1.Object) bool {
	_, written := live.GetAnnotations()[v1beta1.AnnotationSource]
	return ref.Kind == managers.StatefulSet && !written
}

// isCollectors tells whether a finalizer is one of the garbage collector's.
func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}
