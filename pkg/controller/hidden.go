// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// hidden remembers the objects that have the name of a child and that no informer shows, because they lack the label that it
// selects by: an object in a child's way, one that ToolHive has made without labels, and a child that has lost its label. At
// takeover and deletion Freehold looks for such objects; otherwise it finds one when the creation of the child is refused. No
// event reports its changes, so it is read again after waits that grow, until an informer shows it or it is gone. An edit of the
// MCPServer ends a wait: a user who has removed what is in the way makes one to have Freehold look.
type hidden struct {
	waits *backoff[apply.ObjectRef]

	mu      sync.Mutex
	objects map[apply.ObjectRef]*child
	// absent has, for names that were read and found free, the UID of the MCPServer that they were read for.
	absent map[apply.ObjectRef]types.UID
	// looked has the refused creations after which a name was read and found free. The same refusal says nothing new.
	looked map[apply.ObjectRef]string
	// asked has, for each object, the intents of the MCPServers that it was read for last.
	asked map[apply.ObjectRef]map[cache.ObjectName]uint64
}

// minHiddenWait and maxHiddenWait bound how often an object is read that no informer shows.
const (
	minHiddenWait = 2 * time.Second
	maxHiddenWait = apply.LongestWait
)

func newHidden(clock clock.PassiveClock) *hidden {
	return &hidden{
		waits:   newBackoff[apply.ObjectRef](clock, minHiddenWait, maxHiddenWait),
		objects: map[apply.ObjectRef]*child{}, absent: map[apply.ObjectRef]types.UID{},
		looked: map[apply.ObjectRef]string{}, asked: map[apply.ObjectRef]map[cache.ObjectName]uint64{},
	}
}

// get returns an object as it was read; nil when none is known.
func (h *hidden) get(ref apply.ObjectRef) *child {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[ref]
}

// put remembers an object, and returns how long it is before it is read again.
func (h *hidden) put(ref apply.ObjectRef, object *child) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[ref] = object
	delete(h.absent, ref)
	return h.waits.next(ref)
}

// isAbsent reports whether a name was found free for an MCPServer, see revealAll, and noteAbsent notes it.
func (h *hidden) isAbsent(ref apply.ObjectRef, server types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.absent[ref] == server
}

func (h *hidden) noteAbsent(ref apply.ObjectRef, server types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.absent[ref] = server
}

// hasLooked reports whether a name was found free after the same refusal of its creation, and noteLook notes it.
func (h *hidden) hasLooked(ref apply.ObjectRef, refusal error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.looked[ref] == refusal.Error()
}

func (h *hidden) noteLook(ref apply.ObjectRef, refusal error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked[ref] = refusal.Error()
}

// isEdited notes what an MCPServer asks for, and reports whether it asked for something else when the object was read for it last.
func (h *hidden) isEdited(ref apply.ObjectRef, server *v1beta1.MCPServer) bool {
	key, now := cache.MetaObjectToName(server), intentOf(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.asked[ref][key]
	if h.asked[ref] == nil {
		h.asked[ref] = map[cache.ObjectName]uint64{}
	}
	h.asked[ref][key] = now
	return known && before != now
}

// drop forgets what is known of a name.
func (h *hidden) drop(ref apply.ObjectRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.absent, ref)
	delete(h.looked, ref)
	delete(h.asked, ref)
	if _, known := h.objects[ref]; known {
		delete(h.objects, ref)
		h.waits.forget(ref)
	}
}

// lookAgain reads the objects that no informer shows when the wait for them is over, or the MCPServer was edited. It returns when to
// do so again; 0 for never.
func (c *Controller) lookAgain(ctx context.Context, server *v1beta1.MCPServer, places []apply.ObjectRef) (wake time.Duration) {
	for _, ref := range places {
		found := c.hidden.get(ref)
		if found == nil {
			continue
		}
		// What is the MCPServer's own, such as an object of ToolHive's without labels, is not in its way.
		edited := c.hidden.isEdited(ref, server) && !metav1.IsControlledBy(found.Object, server)
		switch left := c.hidden.waits.left(ref); {
		case c.caches.holds(ref):
			c.hidden.drop(ref)
		case left > 0 && !edited:
			wake = sooner(wake, left)
		default:
			_, wait, err := c.readHidden(ctx, ref)
			if err != nil {
				klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
				if edited {
					c.hidden.waits.forget(ref) // The edit is not answered yet, so the next read is soon.
				}
				wait = c.hidden.waits.next(ref)
			}
			wake = sooner(wake, wait)
		}
	}
	return wake
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it has
// changed since it was read. The next pass, which begins at once if there is one, decides on it. wake is when to look again.
func (c *Controller) discover(ctx context.Context, out apply.Outcome) (discovered bool, wake time.Duration) {
	ref := out.Object
	if ref.Kind == managers.MCPServer || ref.Kind == podKind || c.caches.holds(ref) {
		return false, 0
	}
	if out.Action != apply.ActionRefused {
		return false, 0 // Nothing was asked, so nothing is learned.
	}
	known := c.hidden.get(ref) != nil
	switch apply.ClassOf(out.Err) {
	case apply.ClassForbidden, apply.ClassInvalid:
		if known || c.hidden.hasLooked(ref, out.Err) {
			return false, 0
		}
		// A creation is authorized, admitted and validated before the API server looks whether the name is free.
	case apply.ClassMoved:
	default:
		return false, 0
	}
	found, wait, err := c.readHidden(ctx, ref)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
		return false, 0
	}
	if found != nil || known {
		return true, time.Millisecond
	}
	c.hidden.noteLook(ref, out.Err)
	return false, wait
}

// readHidden reads an object that no informer shows, and remembers it as it is; nil when there is none. Wake is when to read it
// again.
func (c *Controller) readHidden(ctx context.Context, ref apply.ObjectRef) (found *child, wake time.Duration, err error) {
	found, err = c.readChild(ctx, ref)
	switch {
	case err != nil:
		return nil, 0, err
	case found == nil || isShown(ref, found):
		c.hidden.drop(ref)
	default:
		wake = c.hidden.put(ref, found)
	}
	return found, wake, nil
}

// revealAll reads each name of a child that no informer shows, once: an object that ToolHive made without labels is to be taken
// over like the rest, and a child that has lost its label is to be deleted with its MCPServer. unread is a name that could not
// be read.
func (c *Controller) revealAll(ctx context.Context, v *view) (unread apply.ObjectRef, err error) {
	for _, ref := range c.places(v.key) {
		if v.children[ref] != nil || c.hidden.isAbsent(ref, v.server.UID) {
			continue
		}
		found, _, err := c.readHidden(ctx, ref)
		switch {
		case err != nil:
			return ref, err
		case found == nil:
			c.hidden.noteAbsent(ref, v.server.UID)
		default:
			if v.children[ref] = found; !slices.Contains(v.refs, ref) {
				v.refs = append(v.refs, ref) // A ConfigMap, whose name contains a hash of its content.
			}
		}
	}
	return unread, nil
}

// reveal is revealAll, and refuses to write an object that cannot be read. It reports whether all were read.
func (p *pass) reveal(ctx context.Context) bool {
	unread, err := p.revealAll(ctx, p.view)
	if err == nil {
		return true
	}
	p.recordOutcome(p.applier.RefuseUnread(ctx, takeover.MainWriter(unread), unread, err))
	return false
}

// readChild reads an object from the API server; nil when there is none.
func (c *Controller) readChild(ctx context.Context, ref apply.ObjectRef) (*child, error) {
	object, err := apply.Read(ctx, ref, c.clients.reading(ref))
	if apply.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.caches.reducer.reduce(ref, object, nil), nil
}

// keep remembers an object that no informer shows as a write has left it, and forgets one that an informer will show. Wake is
// when to read it again.
func (c *Controller) keep(ref apply.ObjectRef, now *child) (wake time.Duration) {
	if isShown(ref, now) {
		c.hidden.drop(ref)
		return 0
	}
	c.applier.WriteTracker().Seen(ref, now.Object.GetResourceVersion()) // No cache will show it.
	return c.hidden.put(ref, now)
}

// isShown reports whether an informer shows an object of this state.
func isShown(ref apply.ObjectRef, object *child) bool {
	child := inventory.Match(ref.Kind, ref.Name)
	return child != nil && child.Selector.Selects(object.Object)
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other > 0 && other < one {
		return other
	}
	return one
}
