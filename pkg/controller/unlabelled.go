// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
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

// lookAgain reads the objects that no informer shows when the wait for them is over, or the MCPServer was edited. It returns when to
// do so again; 0 for never.
func (c *Controller) lookAgain(ctx context.Context, server *v1beta1.MCPServer, state *serverState, places []apply.ObjectRef) (wake time.Duration) {
	now := c.config.Clock.Now()
	for _, ref := range places {
		if state.unlabelled.get(ref) == nil {
			continue
		}
		known, intent := state.unlabelled[ref], intentOf(server)
		// An object that the MCPServer controls, such as one that ToolHive made without labels, does not block a child.
		edited := known.intent != 0 && known.intent != intent && !metav1.IsControlledBy(known.object.Object, server)
		known.intent = intent
		switch left := known.wait.Left(now); {
		case c.caches.Holds(ref):
			delete(state.unlabelled, ref)
		case left > 0 && !edited:
			wake = sooner(wake, left)
		default:
			_, wait, err := c.readUnlabelled(ctx, state, ref)
			if err != nil {
				klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
				if edited {
					known.wait = priorityqueue.Wait{} // The edit is not answered yet, so the next read is soon.
				}
				wait = known.wait.Next(c.config.Clock.Now(), unlabelledBounds)
			}
			wake = sooner(wake, wait)
		}
	}
	return wake
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it has
// changed since it was read. The next pass, which begins at once if there is one, decides on it. wake is when to look again.
func (c *Controller) discover(ctx context.Context, state *serverState, out apply.Outcome) (discovered bool, wake time.Duration) {
	ref := out.Object
	if ref.Kind == managers.MCPServer || ref.Kind == observed.PodKind || c.caches.Holds(ref) {
		return false, 0
	}
	if out.Action != apply.ActionRefused {
		return false, 0 // Nothing was asked, so nothing is learned.
	}
	known := state.unlabelled.get(ref) != nil
	switch apply.ClassOf(out.Err) {
	case apply.ClassForbidden, apply.ClassInvalid:
		if known || state.unlabelled[ref] != nil && state.unlabelled[ref].refusal == out.Err.Error() {
			return false, 0
		}
		// A creation is authorized, admitted and validated before the API server looks whether the name is free.
	case apply.ClassMoved:
	default:
		return false, 0
	}
	found, wait, err := c.readUnlabelled(ctx, state, ref)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
		return false, 0
	}
	if found != nil || known {
		return true, time.Millisecond
	}
	state.unlabelled.note(ref).refusal = out.Err.Error()
	return false, wait
}

// readUnlabelled reads an object that no informer shows, and remembers it as it is; nil when there is none. Wake is when to read it
// again.
func (c *Controller) readUnlabelled(ctx context.Context, state *serverState, ref apply.ObjectRef) (found *observed.Child, wake time.Duration, err error) {
	found, err = c.readChild(ctx, ref)
	switch {
	case err != nil:
		return nil, 0, err
	case found == nil:
		delete(state.unlabelled, ref)
	default:
		wake = c.keep(state, ref, found)
	}
	return found, wake, nil
}

// revealAll reads each name of a child that no informer shows, once: an object that ToolHive made without labels is to be taken
// over like the rest, and a child that has lost its label is to be deleted with its MCPServer. unread is a name that could not
// be read.
func (c *Controller) revealAll(ctx context.Context, state *serverState, v *observed.Snapshot) (unread apply.ObjectRef, err error) {
	for _, ref := range state.places(v.Key) {
		if known := state.unlabelled[ref]; v.Children[ref] != nil || known != nil && known.absent {
			continue
		}
		found, _, err := c.readUnlabelled(ctx, state, ref)
		switch {
		case err != nil:
			return ref, err
		case found == nil:
			state.unlabelled.note(ref).absent = true
		default:
			if v.Children[ref] = found; !slices.Contains(v.Refs, ref) {
				v.Refs = append(v.Refs, ref) // A ConfigMap, whose name contains a hash of its content.
			}
		}
	}
	return unread, nil
}

// reveal is revealAll, and refuses to write an object that cannot be read. It reports whether all were read.
func (p *pass) reveal(ctx context.Context) bool {
	unread, err := p.revealAll(ctx, p.state, p.Snapshot)
	if err == nil {
		return true
	}
	p.recordOutcome(p.applier.RefuseUnread(ctx, takeover.MainWriter(unread), unread, err))
	return false
}

// readChild reads an object from the API server; nil when there is none.
func (c *Controller) readChild(ctx context.Context, ref apply.ObjectRef) (*observed.Child, error) {
	object, err := apply.Read(ctx, ref, c.clients.reading(ref))
	if apply.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.caches.Reducer.Reduce(ref, object, nil), nil
}

// keep remembers an object that no informer shows, and forgets one that an informer shows or will show. Wake is when to read it again.
func (c *Controller) keep(state *serverState, ref apply.ObjectRef, now *observed.Child) (wake time.Duration) {
	if observed.IsShown(ref, now) {
		delete(state.unlabelled, ref)
		return 0
	}
	c.applier.WriteTracker().Seen(ref, now.Object.GetResourceVersion()) // No cache will show it.
	known := state.unlabelled.note(ref)
	known.object, known.absent = now, false
	return known.wait.Next(c.config.Clock.Now(), unlabelledBounds)
}
