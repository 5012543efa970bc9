// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// unlabelledObjects are the objects that have the name of a child and that no informer shows, because they lack the label that it
// selects by: an object in a child's way, one that ToolHive has made without labels, and a child that has lost its label. At
// takeover and deletion Freehold looks for such objects; otherwise it finds one when the creation of the child is refused. No
// event reports its changes, so it is read again after waits that grow, until an informer shows it or it is gone. An edit of the
// MCPServer ends a wait: a user who has removed what is in the way makes one to have Freehold look.
type unlabelledObjects map[apply.ObjectRef]*unlabelledObject

// unlabelledObject is what is known of a name without an informer.
type unlabelledObject struct {
	// object as it was read; nil when none is known.
	object *observed.Child
	// wait is how long it is before it is read again.
	wait priorityqueue.Wait
	// absent is set when the name was read and found free, see revealAll.
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

// lookAgain reads the objects that no informer shows when the wait for them is over, or the MCPServer was edited.
func (x *executor) lookAgain(server *v1beta1.MCPServer, places []apply.ObjectRef) {
	now, state := x.config.Clock.Now(), x.pass.state
	for _, ref := range places {
		if state.unlabelled.get(ref) == nil {
			continue
		}
		known, intent := state.unlabelled[ref], intentOf(server)
		// An object that the MCPServer controls, such as one that ToolHive made without labels, does not block a child.
		edited := known.intent != 0 && known.intent != intent && !metav1.IsControlledBy(known.object.Object, server)
		known.intent = intent
		switch left := known.wait.Left(now); {
		case x.caches.Holds(ref):
			delete(state.unlabelled, ref)
		case left > 0 && !edited:
			x.wakeIn(left)
		default:
			if _, err := x.readUnlabelled(ref); err != nil {
				klog.FromContext(x.ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
				if edited {
					known.wait = priorityqueue.Wait{} // The edit is not answered yet, so the next read is soon.
				}
				x.wakeIn(known.wait.Next(x.config.Clock.Now(), unlabelledBounds))
			}
		}
	}
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it has
// changed since it was read. The next pass, which begins at once if there is one, decides on it.
func (x *executor) discover(out apply.Outcome) {
	ref, state := out.Object, x.pass.state
	if out.Action != apply.ActionRefused || ref.Kind == managers.MCPServer || ref.Kind == observed.PodKind || x.caches.Holds(ref) {
		return
	}
	known := state.unlabelled.get(ref) != nil
	switch apply.ClassOf(out.Err) {
	case apply.ClassForbidden, apply.ClassInvalid:
		if known || state.unlabelled[ref] != nil && state.unlabelled[ref].refusal == out.Err.Error() {
			return
		}
		// A creation is authorized, admitted and validated before the API server looks whether the name is free.
	case apply.ClassMoved:
	default:
		return
	}
	found, err := x.readUnlabelled(ref)
	switch {
	case err != nil:
		klog.FromContext(x.ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
	case found != nil || known:
		x.pass.discovered = true
		x.wakeIn(time.Millisecond)
	default:
		state.unlabelled.note(ref).refusal = out.Err.Error()
	}
}

// readUnlabelled reads an object that no informer shows, and remembers it as it is; nil when there is none.
func (x *executor) readUnlabelled(ref apply.ObjectRef) (found *observed.Child, err error) {
	object, err := apply.Read(x.ctx, ref, x.clients.reading(ref))
	switch {
	case apply.IsAbsent(err):
		delete(x.pass.state.unlabelled, ref)
		return nil, nil
	case err != nil:
		return nil, err
	}
	found = x.caches.Reducer.Reduce(ref, object, nil)
	x.keep(ref, found)
	return found, nil
}

// reveal reads each name of a child that no informer shows, once: an object that ToolHive made without labels is to be taken
// over like the rest, and a child that has lost its label is to be deleted with its MCPServer. It refuses to write an object that cannot
// be read, and reports whether all were read.
func (x *executor) reveal() bool {
	state, p := x.pass.state, x.pass
	for _, ref := range state.places(p.Key) {
		if known := state.unlabelled[ref]; p.Children[ref] != nil || known != nil && known.absent {
			continue
		}
		found, err := x.readUnlabelled(ref)
		switch {
		case err != nil:
			x.record(x.applier.RefuseUnread(x.ctx, takeover.MainWriter(ref), ref, err))
			return false
		case found == nil:
			state.unlabelled.note(ref).absent = true
		default:
			p.Add(ref, found)
		}
	}
	return true
}

// keep remembers an object that no informer shows, and forgets one that an informer shows or will show.
func (x *executor) keep(ref apply.ObjectRef, now *observed.Child) {
	state := x.pass.state
	if observed.IsShown(ref, now) {
		delete(state.unlabelled, ref)
		return
	}
	x.applier.WriteTracker().Seen(ref, now.Object.GetResourceVersion()) // No cache will show it.
	known := state.unlabelled.note(ref)
	known.object, known.absent = now, false
	x.wakeIn(known.wait.Next(x.config.Clock.Now(), unlabelledBounds))
}
