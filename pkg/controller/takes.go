// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// takes remembers what this process has taken for the present request to take of each MCPServer. The record on the
// MCPServer is what counts; this is for a manager that claims a field again within the second, which the times in
// managedFields do not tell apart.
type takes struct {
	mu sync.Mutex
	of map[cache.ObjectName]taken
}

// taken is what was taken for one request.
type taken struct {
	request string
	fields  map[string]bool
	// withdrawn tells that the request was seen to be gone, and that its record is still to go: the same asked for
	// meanwhile is another request.
	withdrawn bool
}

func (t *takes) done(key cache.ObjectName, digest string, object apply.ObjectRef, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.of[key]
	return now.request == digest && now.fields[object.String()+path]
}

func (t *takes) note(key cache.ObjectName, digest string, out apply.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, change := range out.Claims {
		if change.Cause != apply.CauseTaken {
			continue
		}
		if t.of == nil {
			t.of = map[cache.ObjectName]taken{}
		}
		if t.of[key].request != digest {
			t.of[key] = taken{request: digest, fields: map[string]bool{}}
		}
		for _, field := range change.Fields {
			t.of[key].fields[out.Object.String()+field.Path] = true
		}
	}
}

func (t *takes) withdraw(key cache.ObjectName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[cache.ObjectName]taken{}
	}
	t.of[key] = taken{withdrawn: true}
}

func (t *takes) isWithdrawn(key cache.ObjectName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[key].withdrawn
}

func (t *takes) forget(key cache.ObjectName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

// recordTake writes down what a request to take is about to end, before anything is taken; with that the MCPServer's next
// pass begins. It forgets a request that is withdrawn. complete tells that every object was there and could be looked at.
func (p *pass) recordTake(ctx context.Context, complete bool) {
	r := p.resolution
	_, recorded := p.server.Annotations[v1beta1.AnnotationTakeRecord]
	config := toolhivev1beta1ac.MCPServer(p.key.Name, p.key.Namespace)
	switch {
	case r.begun, r.take.Empty() && !recorded:
		return
	case r.take.Empty():
		p.takes.withdraw(p.key)
	default:
		record := p.toTake(ctx)
		if len(record.Claims) == 0 && !complete || p.unanswered() {
			return // There may be more to take than is known.
		}
		config.WithAnnotations(map[string]string{v1beta1.AnnotationTakeRecord: record.String()})
	}
	out := p.write(ctx, managers.Requests, apply.Request{Object: serverRef(p.key), Config: config})
	if out.Err == nil {
		p.takes.forget(p.key) // What was taken for another request, or for the same one that was withdrawn, counts no more.
	}
}

// unanswered reports whether a writer does not know whether its fields are contested: it lost a race, or got no answer.
func (p *pass) unanswered() bool {
	return slices.ContainsFunc(p.refused, func(err error) bool {
		refusal, ok := errors.AsType[*apply.Refusal](err)
		return ok && refusal.Writer != "" && (refusal.Class == apply.ClassMoved || refusal.Class == apply.ClassTransient)
	})
}

// toTake records the claims that the request to take is about, as they stand.
func (p *pass) toTake(ctx context.Context) request.Record {
	asked := p.resolution.take
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
	for _, conflict := range p.conflicts() {
		fields(conflict.Object, conflict.Fields)
	}
	fields(serverRef(p.key), p.heldStatus(ctx))
	for _, ref := range p.refs {
		live := p.object(ref)
		if live == nil || ref.Kind == managers.ConfigMap || !takeover.Held(live, "") || !p.isOwned(ref, live) || p.untaken(ref) {
			continue
		}
		entries := live.GetManagedFields()
		for i := range entries {
			o := ownership.OwnerOf(&entries[i])
			if managers.IsToolHive(o.Manager) && asked.Manager(ref, o.Manager) && record.Add(request.ClaimID(ref, o)) {
				took = append(took, fmt.Sprintf("all of %s from %s", ref, o))
			}
		}
	}
	slices.Sort(took)
	record.Took = status.List(slices.Compact(took))
	return record
}

// conflicts are those that this pass has found.
func (p *pass) conflicts() (found []*apply.ConflictError) {
	for _, err := range p.refused {
		if conflict, ok := errors.AsType[*apply.ConflictError](err); ok {
			found = append(found, conflict)
		}
	}
	return found
}

// heldStatus are the fields of the status that others hold and our writer does not.
func (p *pass) heldStatus(ctx context.Context) []apply.FieldConflict {
	req := p.statusRequest(nil)
	held, err := apply.HeldByOthers(p.clients.writers[writerKey{managers.Status, managers.MCPServer}], req)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell who holds the status")
	}
	return held
}

// takeStatus takes what the request to take is about of the status. What is taken is then written with the rest.
func (p *pass) takeStatus(ctx context.Context) {
	live := p.object(serverRef(p.key))
	if !slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return p.resolution.takes(serverRef(p.key), ownership.OwnerOf(&e))
	}) {
		return
	}
	req := p.statusRequest(nil)
	p.resolution.complete(&req)
	p.recordOutcome(p.applier.TakeHeld(ctx, p.clients.writers[writerKey{managers.Status, managers.MCPServer}], req))
}
