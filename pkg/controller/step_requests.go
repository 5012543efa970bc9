// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

func followRequests(p *pass, do *executor) {
	complete := !p.blocked && !p.made && p.held == 0 && len(p.result.Held) == 0 && !slices.ContainsFunc(p.refused, isUnanswered)
	carryOutTake(p, do, complete)
	p.observation = ofResult(p.Server, p.result, p.capped)
	p.observation.Requests = p.resolution.findings(complete, contested(p, do), slices.ContainsFunc(p.refused, losesTrack))
}

// carryOutTake carries out a request to take fields of the status, which is then written with the rest. Before anything is taken for a new
// request it records which claims the request is to end; the event of that record begins the next pass. It forgets a request that is
// withdrawn. complete means that every object was there and could be looked at.
func carryOutTake(p *pass, do *executor, complete bool) {
	r, ref := p.resolution, observed.ServerRef(p.Key)
	if slices.ContainsFunc(p.Object(ref).GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return r.takes(ref, ownership.OwnerOf(&e))
	}) {
		r.refused = do.takeHeld().Err != nil
	}
	_, recorded := p.Server.Annotations[v1beta1.AnnotationTakeRecord]
	config := toolhivev1beta1ac.MCPServer(p.Key.Name, p.Key.Namespace)
	switch {
	case r.begun:
		r.held = slices.DeleteFunc(heldOfStatus(p, do), func(f apply.FieldConflict) bool {
			return !slices.ContainsFunc(f.Owners, func(o ownership.Owner) bool { return !takeover.FromToolHive(o) }) // Claims of ToolHive alone are inherited.
		})
		return
	case r.take.Empty() && !recorded:
		return
	case r.take.Empty():
		p.state.taken = takeState{withdrawn: true}
	default:
		held := heldOfStatus(p, do)
		record := claimsToTake(p.Snapshot, r.take, conflicts(p.refused), held)
		if slices.ContainsFunc(p.refused, losesTrack) {
			return // The next pass, which begins at once, may know of more to take.
		}
		if len(record.Claims) == 0 && !complete {
			r.undecided = true // There may be something to take that is not known, and it may take long to find out.
			return
		}
		config.WithAnnotations(map[string]string{v1beta1.AnnotationTakeRecord: record.String()})
	}
	out := do.write(managers.Requests, apply.Request{Object: ref, Config: config})
	if out.Err == nil {
		// What was taken for another request, or for this one before it was withdrawn, counts no more, nor does the end of either.
		p.state.taken, p.state.told.take = takeState{}, ""
	}
}

// heldOfStatus returns the fields of the status that others own and our writer does not.
func heldOfStatus(p *pass, do *executor) []apply.FieldConflict {
	held, err := apply.HeldByOthers(do.statusWriter(), statusRequest(&p.takeover, nil))
	if err != nil {
		klog.FromContext(do.ctx).Error(err, "Cannot tell who holds the status")
	}
	return held
}

// contested returns the conflicts that the pass has found, those that a later refusal of the same write has not ended, and what other
// managers hold of the status while a request to take is carried out.
func contested(p *pass, do *executor) []*apply.ConflictError {
	found := conflicts(p.refused)
	if held := p.resolution.held; len(held) > 0 {
		refusal := apply.Refusal{Class: apply.ClassConflict, Writer: managers.Status, Object: observed.ServerRef(p.Key)}
		found = append(found, &apply.ConflictError{Refusal: refusal, Fields: held})
	}
	for _, err := range p.refused {
		refusal, ok := errors.AsType[*apply.Refusal](err)
		if !ok || refusal.Class == apply.ClassConflict {
			continue
		}
		if conflict := do.standingConflict(claimKey{refusal.Writer, refusal.Object}); conflict != nil {
			found = append(found, conflict)
		}
	}
	return found
}

// recallConflicts adds to the refusals the conflicts of writers that have made no attempt: the proxy waits for a usable reference or for
// its turn, an object for what it depends on, or all for the finalizer. They stand as long as the claims on the object do not change. Of
// those that an operator before this one has found, the status alone knows.
func recallConflicts(p *pass, do *executor) {
	var waiting []claimKey
	for _, intent := range p.result.Intents {
		if !managers.CountsReplicas(intent.Writer) {
			waiting = append(waiting, claimKey{intent.Writer, apply.NewObjectRef(intent.Kind, p.Key.Namespace, intent.Name)})
		}
	}
	// There is no intent of a proxy that is held, or waits for its turn; nor, while it is held, of the ConfigMaps that it reads.
	absent := []claimKey{{managers.Proxy, p.DeploymentRef()}}
	for _, ref := range p.state.configMaps {
		if !isInTheWay(p.Snapshot, ref) { // Nothing is written to what another client has made.
			absent = append(absent, claimKey{inventory.MainWriter(ref.Kind, ref.Name), ref})
		}
	}
	absent = slices.DeleteFunc(absent, func(proxy claimKey) bool { return slices.Contains(waiting, proxy) })
	for _, w := range slices.DeleteFunc(slices.Concat(waiting, absent), p.attempted.Has) {
		conflict, known := do.reviewConflict(w)
		if conflict != nil {
			do.refuse(conflict)
		}
		if !known && !p.state.unlabelled.isFree(w.object) {
			p.unattempted = append(p.unattempted, w.object)
		}
	}
}

// claimsToTake records the claims that the request to take is about, as they stand: those that are in conflict, those to fields of
// the status that others own and our writer does not, and all of ToolHive to what was taken over.
func claimsToTake(v *observed.Snapshot, asked *request.Request, conflicts []*apply.ConflictError, held []apply.FieldConflict) request.Record {
	record := request.Record{Request: request.Digest(asked.Text)}
	var took []string
	fields := func(object apply.ObjectRef, contested []apply.FieldConflict) {
		for _, f := range contested {
			for _, o := range f.Owners {
				if asked.Contested(object, f.Path, o) && record.Add(request.ClaimID(object, o)) {
					took = append(took, fmt.Sprintf("%s of %s from %s", f.Path, object, o))
				}
			}
		}
	}
	for _, conflict := range conflicts {
		fields(conflict.Object, conflict.Fields)
	}
	fields(observed.ServerRef(v.Key), held)
	for ref, live := range v.Existing() {
		for _, o := range intruders(v, ref, live) {
			if asked.Manager(ref, o.Manager) && record.Add(request.ClaimID(ref, o)) {
				took = append(took, fmt.Sprintf("all of %s from %s", ref, o))
			}
		}
	}
	slices.Sort(took)
	record.Took = status.List(slices.Compact(took))
	return record
}
