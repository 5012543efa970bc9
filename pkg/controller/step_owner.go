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

// ahead names the children whose source is a newer generation of the MCPServer than this cache has, and returns them as
// forged. An operator that is ahead of this one may have written them; or a user has forged or restored the annotation,
// which would hold its writer back for ever. They are forged if the API server then confirms the MCPServer. Each is named
// with all that a writer of it would change, so that a confirmation does not hold for a child that another operator has
// written since; a change of its status makes no difference.
func ahead(v *observed.Snapshot) (names string, forged []apply.ObjectRef) {
	var found []string
	for ref, live := range v.Existing() {
		if live.GetDeletionTimestamp() == nil && isAhead(v, nil, live) && v.IsOwned(ref, live) {
			forged = append(forged, ref)
			found = append(found, fmt.Sprintf("%s>%d@%x", ref, v.Server.Generation, v.Children[ref].EntriesHash()))
		}
	}
	slices.Sort(found)
	return strings.Join(found, " "), forged
}

// isAhead reports whether a child records a later generation of the MCPServer, or a newer state of an object that it refers to, than
// this pass knows.
func isAhead(v *observed.Snapshot, references apply.References, live metav1.Object) bool {
	source := apply.Source{UID: v.Server.UID, Generation: v.Server.Generation}
	return source.Ahead(live, v1beta1.AnnotationSource, v1beta1.AnnotationReplicasSource) ||
		len(references.Ahead(live, v1beta1.AnnotationReferences)) > 0
}

// unowned names the children that do not refer to the MCPServer, each with all that a writer of it would change, as ahead does; it is
// empty when all refer to it.
func unowned(v *observed.Snapshot) string {
	var found []string
	for ref, live := range v.Existing() {
		if isUntaken(v, ref) && waitsFor(v, ref) != "" {
			continue
		}
		if live.GetDeletionTimestamp() == nil && !metav1.IsControlledBy(live, v.Server) && v.IsOwned(ref, live) {
			found = append(found, fmt.Sprintf("%s@%x", ref, v.Children[ref].EntriesHash()))
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// ownFinalizer makes the finalizer ours, and thereby sure that the MCPServer is as this cache has it where there are doubts: about children
// without a reference to it, and, see ahead, about those that are ahead of it. It reports whether the pass is to go on.
//
// A user may have removed the reference; then it is to come back. Or the garbage collector has, because the MCPServer
// was deleted and its children are to stay; then restoring it would end the child. The caches of two kinds do not show
// these changes in their order. So before a child gets a reference, the API server is asked to confirm that the
// MCPServer still is as this cache has it. Built-in controllers read the owner again for the same reason.
func ownFinalizer(p *pass, do *executor) bool {
	unowned := unowned(p.Snapshot)
	ahead, forged := ahead(p.Snapshot)
	doubts := strings.TrimSpace(unowned + " " + ahead)
	if doubts == "" {
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
	case !slices.ContainsFunc(p.refused, isReported):
		return false // It should be over in a moment.
	default:
		p.blocked = true // Children without a finalizer could be left behind. The condition says what keeps Freehold from writing them.
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		p.state.confirmedOwner = doubts
	}
	if p.state.confirmedOwner == doubts {
		p.forged = forged // As far as is known.
	}
	return true
}

// doubts names the children that record newer states of references than this pass knows, each with all that a writer of it would
// change, and those references.
func doubts(v *observed.Snapshot, known apply.References) (text string, children []apply.ObjectRef, references []string) {
	var found []string
	for ref, live := range v.Existing() {
		names := known.Ahead(live, v1beta1.AnnotationReferences)
		if len(names) == 0 || live.GetDeletionTimestamp() != nil || !v.IsOwned(ref, live) {
			continue
		}
		children, references = append(children, ref), append(references, names...)
		found = append(found, fmt.Sprintf("%s@%x", ref, v.Children[ref].EntriesHash()))
	}
	if len(found) == 0 {
		return "", nil, nil
	}
	slices.Sort(found)
	slices.Sort(references)
	return strings.Join(append(found, known.String()), " "), children, slices.Compact(references)
}

// confirmationBounds bound how often references are read to confirm that they have no newer state.
var confirmationBounds = priorityqueue.Bounds{Shortest: minBackoff, Longest: maxBackoff}

// confirmReferences finds the children that record newer states of references for which a read confirms that no such states exist: the
// API server has the objects as this cache has them. Then the annotation was forged, or restored from a copy, and would hold the writer
// back for ever. A confirmation takes a read of each object, so it is repeated after waits that grow.
func confirmReferences(p *pass, do *executor) {
	text, children, references := doubts(p.Snapshot, p.references)
	if text == "" {
		return
	}
	if p.state.confirmedReferences == text {
		p.confirmed = children
		return
	}
	if left := p.state.confirmationWait.Left(do.config.Clock.Now()); left > 0 {
		do.wakeIn(left)
		return
	}
	do.wakeIn(p.state.confirmationWait.Begin(do.config.Clock.Now(), confirmationBounds))
	for _, ours := range p.references {
		if slices.Contains(references, ours.Name) && !do.readReference(ours) {
			return // If this cache is behind, it will catch up, and that wakes the MCPServer.
		}
	}
	p.state.confirmedReferences = text
	p.confirmed = children
}
