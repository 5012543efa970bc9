// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

// takeState is the set of fields that were taken for one request.
type takeState struct {
	request string
	fields  map[string]bool
	// withdrawn is set when the request was seen to be gone and its record is still there: the same asked for meanwhile is
	// another request.
	withdrawn bool
}

// has reports whether a field was taken for a request, and add notes which were.
func (t *takeState) has(digest string, object apply.ObjectRef, path string) bool {
	return t.request == digest && t.fields[object.String()+path]
}

func (t *takeState) add(digest string, out apply.Outcome) {
	for _, change := range out.Claims {
		if change.Cause != apply.CauseTaken {
			continue
		}
		if t.request != digest {
			*t = takeState{request: digest}
		}
		if t.fields == nil {
			t.fields = map[string]bool{}
		}
		for _, field := range change.Fields {
			t.fields[out.Object.String()+field.Path] = true
		}
	}
}

// settledPass is how a pass has left the children, when it left nothing to do but what is in conflict. A pass that finds them unchanged,
// and is to render the same, has nothing to do either: it goes on to the status. More than half of all passes are of that kind, since
// most events are about pods and the progress of rollouts.
type settledPass struct {
	// input is the hash of inputHash.
	input uint64
	// result is what was rendered, without the intents.
	result render.Result
	// conflicts stand until the input changes.
	conflicts []error
	// left are the unwanted children that pods use, and the objects that conflicts keep from being written. Its snapshot is that of a pass.
	left pruning
	// unattempted are those of the pass.
	unattempted []apply.ObjectRef
}

var inputSeed = maphash.MakeSeed()

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

// failure of a proxy pod for want of a backend: how often the runner had been started again by then.
type failure int32

// unlabelledObjects are the objects that have the name of a child and that no informer shows, because they lack the label that it selects
// by: an object in a child's way, an object that ToolHive has made without labels, and a child that has lost its label. At takeover and
// deletion, and for a workload that is not to be written, Freehold looks for such objects; otherwise it finds one when the creation of the
// child is refused. No event reports a change of such an object, so Freehold reads it again after waits that grow, until an informer shows
// it or it is gone. An edit of the MCPServer ends a wait: a user who has removed what was in the way edits the MCPServer to have Freehold
// look.
type unlabelledObjects map[apply.ObjectRef]*unlabelledObject

// unlabelledObject is what is known of a name without an informer.
type unlabelledObject struct {
	// object as it was read; nil when none is known.
	object *observed.Child
	// wait is how long it is before it is read again.
	wait priorityqueue.Wait
	// absent is set when the name was read and found free, see executor.reveal.
	absent bool
	// refusal is the refused creation after which the name was read and found free. The same refusal says nothing new.
	refusal string
	// intent is what the MCPServer asked for when the object was read last, see intentOf; 0 when it was not.
	intent uint64
}

// unlabelledBounds bound how often an object is read that no informer shows.
var unlabelledBounds = priorityqueue.Bounds{Shortest: 2 * time.Second, Longest: apply.LongestWait}

// get returns an object as it was read; nil when none is known.
func (u unlabelledObjects) get(ref apply.ObjectRef) *observed.Child {
	if known := u[ref]; known != nil {
		return known.object
	}
	return nil
}

// isFree reports whether a name was read, and there was no object.
func (u unlabelledObjects) isFree(ref apply.ObjectRef) bool { return u[ref] != nil && u[ref].absent }

// note returns what is known of a name, to be changed.
func (u *unlabelledObjects) note(ref apply.ObjectRef) *unlabelledObject {
	if *u == nil {
		*u = unlabelledObjects{}
	}
	if (*u)[ref] == nil {
		(*u)[ref] = &unlabelledObject{}
	}
	return (*u)[ref]
}

// statusBounds bound how often a status is written again that another process overwrites.
var statusBounds = priorityqueue.Bounds{Shortest: time.Second, Longest: time.Minute}

// statusBackoff slows down the writes of a status that another process under the name of our field manager writes too: an operator that
// has lost its lease and does not know it yet, or one of another installation. The API server sees no conflict between them, and two
// operators that see different things would overwrite each other as fast as they can. A new status is written at once; one that was written before and
// has been overwritten since, at once the first time, and then after waits that grow.
type statusBackoff struct {
	priorityqueue.Wait
	// written is the fingerprint of the status that this process has written last; 0 for none.
	written uint64
}

// again reports whether a status is the one that this process has written last, and is not there any more.
func (b *statusBackoff) again(server *v1beta1.MCPServer, next v1beta1.MCPServerStatus) bool {
	return b.written != 0 && b.written == fingerprint(server, next) && b.written != fingerprint(server, server.Status)
}

var statusSeed = maphash.MakeSeed()

// fingerprint identifies our part of a status, without the times at which its conditions changed: they change with each overwrite.
func fingerprint(server *v1beta1.MCPServer, of v1beta1.MCPServerStatus) uint64 {
	config := status.Intent(server, of)
	owned := v1beta1.OwnedConditions()
	conditions := config.Status.Conditions[:0]
	for _, condition := range config.Status.Conditions {
		if slices.Contains(owned, *condition.Type) {
			condition.LastTransitionTime = nil
			conditions = append(conditions, condition)
		}
	}
	config.Status.Conditions = conditions
	text, err := json.Marshal(config.Status)
	if err != nil {
		return 0 // Texts and numbers alone can be encoded.
	}
	return maphash.Bytes(statusSeed, text)
}

// tierStates are the rollouts of one MCPServer.
type tierStates struct{ backend, proxy rollout.State }

// ownStatus is what a status tells that this process has computed, and that the API server has.
type ownStatus struct {
	// known is set once this process has written such a status, or found it written.
	known bool
	// contested are the objects of the conflicts that the status reports; nil while it may report a conflict that an earlier operator found
	// and this one has not.
	contested sets.Set[apply.ObjectRef]
	// take is the digest of the request to take whose end it tells, and missed is set when not all could be taken.
	take   string
	missed bool
}

// metricsState is what others than passes see of a serverState. It is never modified.
type metricsState struct {
	tierStates
	// onDelete is set while the StatefulSet has the update strategy OnDelete.
	onDelete bool
}
