// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// hidden remembers the objects that have the name of a child and that no informer shows, for want of the label that it
// selects by: what stands in a child's way, what ToolHive has made without labels, and a child that has lost its label. Such
// an object is found when the creation of the child is refused, and is read then. One that is the MCPServer's gets its label
// when it is written; another one is looked for again when its refusal is over.
type hidden struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[apply.ObjectRef]hiddenObject
}

type hiddenObject struct {
	*child
	// until is when it is looked for again; zero for not.
	until time.Time
}

func newHidden(clock clock.PassiveClock) *hidden {
	return &hidden{clock: clock, objects: map[apply.ObjectRef]hiddenObject{}}
}

// get returns an object as it was read; nil when none is known.
func (h *hidden) get(ref apply.ObjectRef) *child {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, known := h.objects[ref]
	if known && !found.until.IsZero() && !h.clock.Now().Before(found.until) {
		delete(h.objects, ref)
		return nil
	}
	return found.child
}

func (h *hidden) put(ref apply.ObjectRef, object *child) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[ref] = hiddenObject{child: object}
}

// lookAgain makes an object be looked for again after a while.
func (h *hidden) lookAgain(ref apply.ObjectRef, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if found, known := h.objects[ref]; known {
		found.until = h.clock.Now().Add(after)
		h.objects[ref] = found
	}
}

func (h *hidden) drop(ref apply.ObjectRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.objects, ref)
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it is not any
// more as it was read. The next pass, which begins at once, decides on it.
func (p *pass) discover(ctx context.Context, out apply.Outcome) {
	ref := out.Object
	if ref.Kind == managers.MCPServer || ref.Kind == podKind || p.caches.child(ref) != nil {
		return
	}
	switch known := p.hidden.get(ref) != nil; apply.ClassOf(out.Err) {
	case apply.ClassForeign:
		p.hidden.lookAgain(ref, out.RetryAfter)
	case apply.ClassGone:
		p.hidden.drop(ref)
	case apply.ClassMoved:
		found, err := p.readChild(ctx, ref)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
			return
		}
		if p.hidden.drop(ref); found != nil && !isShown(ref, found) {
			p.hidden.put(ref, found)
		}
		if found != nil || known {
			p.discovered = true
			p.wakeAfter(time.Millisecond)
		}
	}
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
