// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/render"
)

// settledPass is how a pass has left the children, when it left nothing to do but what is in conflict. A pass that finds them unchanged,
// and is to render the same, has nothing to do either: it goes on to the status. More than half of all passes are of that kind, since
// most events are about pods and the progress of rollouts.
type settledPass struct {
	// input is the hash of inputHash.
	input uint64
	// result is what was rendered, without the intents.
	result render.Result
	// conflicts stand until the input changes, and unwritten are the objects that they keep from being written.
	conflicts []error
	unwritten sets.Set[apply.ObjectRef]
	// unattempted are those of the pass.
	unattempted []apply.ObjectRef
}

var inputSeed = maphash.MakeSeed()

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
	var children uint64 // A sum, since a pass that makes a child does not have it where the next one does.
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

// intentOf identifies what an MCPServer asks for: its spec, labels and annotations, and whether it is to go. Comparable within one
// process.
func intentOf(server *v1beta1.MCPServer) uint64 {
	var h maphash.Hash
	h.SetSeed(inputSeed)
	maphash.WriteComparable(&h, server.UID)
	maphash.WriteComparable(&h, server.Generation)
	for _, values := range []map[string]string{server.Labels, server.Annotations} {
		maphash.WriteComparable(&h, len(values))
		for _, key := range slices.Sorted(maps.Keys(values)) {
			maphash.WriteComparable(&h, [2]string{key, values[key]})
		}
	}
	return h.Sum64()
}

// hasSettled reports whether a pass has left nothing to do about the children, and nothing that does not follow from the same
// input: it neither waits for a time, nor carries out a request of the MCPServer's author, nor takes the MCPServer over. It
// may have met with conflicts, which wait for a change. It may wait for the backend to begin with the proxy, but not if an answer
// has shown meanwhile that the backend is ready.
func (p *pass) hasSettled(result *render.Result) bool {
	unwanted := (&pruning{Snapshot: p.Snapshot, result: result}).unwanted()
	_, _, restarts := render.ImmediateRestart(p.Server)
	asked := func(key string) bool { return p.Server.Annotations[key] != "" }
	passes := func(refusal error) bool { return apply.ClassOf(refusal) != apply.ClassConflict }
	return !restarts && !p.blocked && !p.discovered && !slices.ContainsFunc(p.refused, passes) && p.held == 0 && len(p.capped) == 0 && len(p.forged)+len(p.confirmed) == 0 &&
		p.takeover.isIdle() && (p.Deployment() != nil || !p.backendReady(result)) &&
		!slices.ContainsFunc([]string{v1beta1.AnnotationTake, v1beta1.AnnotationTakeRecord, v1beta1.AnnotationYield}, asked) &&
		!slices.ContainsFunc(unwanted, func(ref apply.ObjectRef) bool { return p.Object(ref) != nil })
}
