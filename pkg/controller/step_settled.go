// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/render"
)

func recallSettled(p *pass, do *executor) bool {
	known := p.state.settled
	p.refusedBefore = len(p.refused)
	if p.blocked || !p.takeover.isIdle() || known == nil || known.input != inputHash(p.Snapshot, p.input) {
		return true
	}
	left := known.left
	left.Snapshot = p.Snapshot
	if left.hasMore() {
		return true
	}
	do.refuse(known.conflicts...)
	p.unwritten, p.unattempted = p.unwritten.Union(known.left.unwritten), known.unattempted
	p.observation = ofResult(p.Server, &known.result, nil)
	return false
}

func settle(p *pass, _ *executor) {
	left := pruningOf(p)
	if !hasSettled(p) || left.hasMore() {
		return
	}
	told := *p.result
	told.Intents, told.Absent = nil, nil
	left.unwanted = slices.DeleteFunc(left.unwanted, func(ref apply.ObjectRef) bool { return p.Object(ref) == nil })
	left.Snapshot, left.unwritten = nil, p.unwritten.Clone()
	p.state.settled = &settledPass{inputHash(p.Snapshot, p.input), told, slices.Clone(p.refused[p.refusedBefore:]), *left, p.unattempted}
}

// inputHash identifies the input that children are rendered from and their state, as far as these decide about writes to
// them. The progress of pods makes no difference. Comparable within one process.
func inputHash(v *observed.Snapshot, input render.Input) uint64 {
	var h maphash.Hash
	h.SetSeed(inputSeed)
	maphash.WriteComparable(&h, intentOf(v.Server))
	if policy := input.AuthzConfigMap; policy != nil {
		maphash.WriteComparable(&h, policy.UID)
		maphash.WriteComparable(&h, policy.ResourceVersion)
	}
	hashReferences(&h, &input.References)
	maphash.WriteComparable(&h, input.BackendProcess)
	maphash.WriteComparable(&h, v.BackendServes())
	var children uint64 // A sum, since the order of a map differs from pass to pass.
	for ref, found := range v.Children {
		children += maphash.Comparable(inputSeed, struct {
			ref             apply.ObjectRef
			standing        uint64
			spoilt, deleted bool
		}{ref, found.EntriesHash(), found.Spoilt, found.Object.GetDeletionTimestamp() != nil})
	}
	maphash.WriteComparable(&h, children)
	return h.Sum64()
}

// hasSettled reports whether a pass has left nothing to do about the children that are wanted, and nothing that does not follow from the same
// input: it neither waits for a time, nor carries out a request of the MCPServer's author, nor takes the MCPServer over. It
// may have met with conflicts, which wait for a change. It may wait for the backend to begin with the proxy, but not if an answer
// has shown meanwhile that the backend is ready.
func hasSettled(p *pass) bool {
	_, _, restarts := render.ImmediateRestart(p.Server)
	asked := func(key string) bool { return p.Server.Annotations[key] != "" }
	passes := func(refusal error) bool { return apply.ClassOf(refusal) != apply.ClassConflict }
	return !restarts && !p.blocked && !p.discovered && !p.wrote && !slices.ContainsFunc(p.refused, passes) && p.held == 0 && len(p.capped)+len(p.altered) == 0 && len(p.forged)+len(p.confirmed) == 0 &&
		p.takeover.isIdle() && (p.Deployment() != nil || !findsBackend(p)) &&
		!slices.ContainsFunc([]string{v1beta1.AnnotationTake, v1beta1.AnnotationTakeRecord, v1beta1.AnnotationYield}, asked)
}

// hashReferences adds the referenced objects of an MCPServer to the hash of an input.
func hashReferences(h *maphash.Hash, in *render.References) {
	for _, state := range in.States() {
		maphash.WriteComparable(h, state)
	}
	for _, kind := range slices.Sorted(maps.Keys(in.Unavailable)) {
		maphash.WriteComparable(h, in.Unavailable[kind])
	}
}
