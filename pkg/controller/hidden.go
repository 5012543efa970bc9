// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// hidden remembers the objects that have the name of a child and that no informer shows, for want of the label that it
// selects by: what stands in a child's way, what ToolHive has made without labels, and a child that has lost its label. At
// takeover and deletion Freehold looks for such objects; otherwise it finds one when the creation of the child is refused. No
// event tells what becomes of it, so it is read again after waits that grow, until an informer shows it or it is gone.
type hidden struct {
	waits *backoff[apply.ObjectRef]

	mu      sync.Mutex
	objects map[apply.ObjectRef]*child
	// absent has, for names that were read and found free, the UID of the MCPServer that they were read for.
	absent map[apply.ObjectRef]types.UID
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

// drop forgets what is known of a name.
func (h *hidden) drop(ref apply.ObjectRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.absent, ref)
	if _, known := h.objects[ref]; known {
		delete(h.objects, ref)
		h.waits.forget(ref)
	}
}

// lookAgain reads what no informer shows when the wait for it is over.
func (p *pass) lookAgain(ctx context.Context) {
	for _, ref := range slices.Concat(fixed(p.key), p.configNames.get(p.key)) {
		switch {
		case p.hidden.get(ref) == nil:
		case p.caches.child(ref) != nil:
			p.hidden.drop(ref)
		case p.hidden.waits.left(ref) > 0:
			p.wakeAfter(p.hidden.waits.left(ref))
		default:
			if _, err := p.readHidden(ctx, ref); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
				p.wakeAfter(p.hidden.waits.next(ref))
			}
		}
	}
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it is not any
// more as it was read. The next pass, which begins at once, decides on it.
func (p *pass) discover(ctx context.Context, out apply.Outcome) {
	ref := out.Object
	if ref.Kind == managers.MCPServer || ref.Kind == podKind || p.caches.child(ref) != nil {
		return
	}
	if out.Action != apply.ActionRefused {
		return // Nothing was asked, so nothing is learned.
	}
	known := p.hidden.get(ref) != nil
	switch apply.ClassOf(out.Err) {
	case apply.ClassGone:
		p.hidden.drop(ref)
		return
	case apply.ClassForbidden, apply.ClassInvalid:
		if known {
			return
		}
		// A creation is authorized, admitted and validated before the API server looks whether the name is free.
	case apply.ClassMoved:
	default:
		return
	}
	found, err := p.readHidden(ctx, ref)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
		return
	}
	if found != nil || known {
		p.discovered = true
		p.wakeAfter(time.Millisecond)
	}
}

// readHidden reads an object that no informer shows, and remembers it as it is; nil when there is none.
func (p *pass) readHidden(ctx context.Context, ref apply.ObjectRef) (*child, error) {
	found, err := p.readChild(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case found == nil || isShown(ref, found):
		p.hidden.drop(ref)
	default:
		p.wakeAfter(p.hidden.put(ref, found))
	}
	return found, nil
}

// readChild reads an object from the API server; nil when there is none.
func (p *pass) readChild(ctx context.Context, ref apply.ObjectRef) (*child, error) {
	object, err := p.clients.reading(ref)(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.caches.reducer.reduce(ref, object, nil), nil
}

// isShown reports whether an informer shows an object of this state.
func isShown(ref apply.ObjectRef, object *child) bool {
	child := inventory.Match(ref.Kind, ref.Name)
	return child != nil && child.Selector.Selects(object.Object)
}
