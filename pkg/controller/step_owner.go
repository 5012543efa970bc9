// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// inDoubt returns the children with something in doubt, and names them with all that a writer of each would change: a confirmation does
// not hold for a child that another operator has written since. A change of its status makes no difference.
func inDoubt(v *observed.Snapshot, doubtful func(ref apply.ObjectRef, live metav1.Object) bool) (text string, children []apply.ObjectRef) {
	var names []string
	for ref, live := range v.Existing() {
		if live.GetDeletionTimestamp() == nil && doubtful(ref, live) && v.IsOwned(ref, live) {
			children = append(children, ref)
			names = append(names, fmt.Sprintf("%s@%x", ref, v.Children[ref].EntriesHash()))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " "), children
}

// isAhead reports whether a child records a later generation of the MCPServer, or a newer state of an object that it refers to, than
// this pass knows.
func isAhead(v *observed.Snapshot, references apply.References, live metav1.Object) bool {
	source := apply.Source{UID: v.Server.UID, Generation: v.Server.Generation}
	return source.Ahead(live, v1beta1.AnnotationSource, v1beta1.AnnotationReplicasSource) ||
		len(references.Ahead(live, v1beta1.AnnotationReferences)) > 0
}

// ownFinalizer makes the finalizer ours. Where children are in doubt, the same request confirms that the MCPServer is as this cache has it.
//
// A child without a reference to the MCPServer may have lost it to a user, and gets it back. Or the garbage collector has removed it,
// because the MCPServer was deleted and its children are to stay; to restore the reference would end the child. The caches of two kinds do
// not show these changes in their order. Built-in controllers read the owner again for the same reason.
//
// A child that records a later generation of the MCPServer may be written by an operator that is ahead of this one. Or a user has forged
// or restored the annotation, which would hold its writer back for ever: that is so if the API server confirms the MCPServer.
func ownFinalizer(p *pass, do *executor) bool {
	unowned, _ := inDoubt(p.Snapshot, func(ref apply.ObjectRef, live metav1.Object) bool {
		return !metav1.IsControlledBy(live, p.Server) && (!isUntaken(p.Snapshot, ref) || waitsFor(p.Snapshot, ref) == "")
	})
	ahead, forged := inDoubt(p.Snapshot, func(_ apply.ObjectRef, live metav1.Object) bool { return isAhead(p.Snapshot, nil, live) })
	doubts := ""
	if unowned != "" || ahead != "" {
		doubts = fmt.Sprintf("unowned: %s, ahead of %d: %s", unowned, p.Server.Generation, ahead)
	} else {
		p.state.confirmedOwner = "" // A confirmation ends with the doubts.
	}
	out := do.write(managers.Finalizer, apply.Request{
		Object:        observed.ServerRef(p.Key),
		Config:        toolhivev1beta1ac.MCPServer(p.Key.Name, p.Key.Namespace).WithFinalizers(v1beta1.Finalizer),
		Preconditions: apply.Preconditions{Confirm: p.state.confirmedOwner != doubts},
	})
	switch class := apply.ClassOf(out.Err); {
	case class == "" || class == apply.ClassConflict:
	case class == apply.ClassMoved && unowned == "" && ahead != "" && slices.Contains(p.Server.Finalizers, v1beta1.Finalizer):
		// This cache is behind the operator that wrote these children. They stay, and the condition reports that.
		p.refused = slices.DeleteFunc(p.refused, func(err error) bool { return err == out.Err }) //nolint:errorlint // this very one
	case !slices.ContainsFunc(p.refused, apply.IsReported):
		return false // The refusal should be over in a moment.
	default:
		p.blocked = true // Children without a finalizer could be left behind. The condition says what keeps Freehold from writing them.
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		p.state.confirmedOwner = doubts
	}
	if p.state.confirmedOwner == doubts {
		p.forged = forged
	}
	return true
}

// confirmationBounds bound how often references are read to confirm that they have no newer state.
var confirmationBounds = priorityqueue.Bounds{Shortest: minBackoff, Longest: maxBackoff}

// confirmReferences finds the children that record newer states of references for which a read confirms that no such states exist: the
// API server has the objects as this cache has them. Then the annotation was forged, or restored from a copy, and would hold the writer
// back for ever. A confirmation takes a read of each object, so it is repeated after waits that grow.
func confirmReferences(p *pass, do *executor) {
	var newer []string
	doubts, children := inDoubt(p.Snapshot, func(_ apply.ObjectRef, live metav1.Object) bool {
		names := p.references.Ahead(live, v1beta1.AnnotationReferences)
		newer = append(newer, names...)
		return len(names) > 0
	})
	if len(children) == 0 {
		return
	}
	doubts += " " + p.references.String()
	if p.state.confirmedReferences != doubts {
		if left := p.state.confirmationWait.Left(do.config.Clock.Now()); left > 0 {
			do.wakeIn(left)
			return
		}
		do.wakeIn(p.state.confirmationWait.Begin(do.config.Clock.Now(), confirmationBounds))
		for _, ours := range p.references {
			if slices.Contains(newer, ours.Name) && !do.readReference(ours) {
				return // If this cache is behind, it will catch up, and that wakes the MCPServer.
			}
		}
	}
	p.state.confirmedReferences, p.confirmed = doubts, children
}
