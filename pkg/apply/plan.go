// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Planned is what a writer would do for a request, and why.
type Planned struct {
	// Outcome is what Applier.Sync would return, except for refusals by the API server other than conflicts.
	Outcome
	// Steps are the requests that would be sent, in order. A request in conflict is the last, unless the fields are
	// taken.
	Steps []Step
	// After is the object after the steps, without the API server's defaults; nil if there is none.
	After *unstructured.Unstructured
	// unrecorded is the field that an unknown client has set, if that is the conflict.
	unrecorded []fieldpath.Path
}

// Step is one request of a Planned: an edit of managedFields, or an apply.
type Step struct {
	// Edit has the fields that change owners, and why; nil for an apply.
	Edit *ClaimChange
	// Apply is the configuration that is applied, without the preconditions; nil for an edit.
	Apply map[string]any
}

// Config returns the configuration that is applied last; nil for none. An edit that gives up fields may follow it.
func (p *Planned) Config() map[string]any {
	for _, step := range slices.Backward(p.Steps) {
		if step.Apply != nil {
			return step.Apply
		}
	}
	return nil
}

// Moved returns the paths of the fields that change owners for a cause.
func (p *Planned) Moved(cause Cause) (paths []string) {
	for _, change := range p.Claims {
		for _, field := range change.Fields {
			if change.Cause == cause {
				paths = append(paths, field.Path)
			}
		}
	}
	return paths
}

// Contested returns the fields of the conflict that the plan ends with, in the order of their paths; nil for none.
func (p *Planned) Contested() []fieldpath.Path {
	conflict, contested := errors.AsType[*ConflictError](p.Err)
	if !contested {
		return nil
	}
	return append(ownership.Paths(p.Live, conflict.names), p.unrecorded...)
}

// Plan returns what Applier.Sync would do with an empty request cache. It is pure: it runs the same procedure, but merges
// its requests into a copy of the object, by the API server's own code. Request.Live is the whole object, of the writer's
// type or unstructured; Plan ignores State and Load. It does not modify the request. The error reports that a value
// cannot be encoded, or does not fit the schema of the writer's target.
func Plan(w Writer, req Request) (*Planned, error) {
	req.State, req.Load = nil, nil
	return w.plan(req)
}

func (w *writer[L, A]) plan(req Request) (*Planned, error) {
	req, err := w.withOwnIntent(req)
	if err != nil {
		return nil, err
	}
	m := &memoryTarget[L, A]{writer: w}
	if err := m.store(&req); err != nil {
		return nil, err
	}
	planner := &writer[L, A]{manager: w.manager, target: w.target, renamed: w.renamed}
	planner.target.Apply, planner.target.Edits.Send = m.apply, m.edit
	planner.target.Edits.Clock = cmp.Or[clock.PassiveClock](w.target.Edits.Clock, clock.RealClock{})

	// Nothing is sent that could be cancelled, and the answer has the errors.
	ctx := klog.NewContext(context.Background(), klog.Logger{}) //nolint:forbidigo // There is nothing to cancel.
	p := &Planned{Outcome: planner.sync(ctx, newRequestCache(planner.target.Edits.Clock), req), Steps: m.steps, After: m.object}
	if conflict, contested := errors.AsType[*ConflictError](p.Err); contested && len(conflict.Fields[0].Owners) > 0 && conflict.Fields[0].Owners[0].IsUnknown() {
		p.unrecorded = []fieldpath.Path{w.target.Recorded.Path}
		content, err := withoutPreconditions(req.Config)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, Step{Apply: content.Object}) // The API server would accept this apply, so the writer does not send it.
	}
	if m.failed != nil {
		return nil, fmt.Errorf("what %s wants of %s cannot be merged: %w", w.manager.Name, req.Object, m.failed)
	}
	claims := p.Claims
	for i := range p.Steps {
		if p.Steps[i].Apply == nil {
			p.Steps[i].Edit, claims = &claims[0], claims[1:]
		}
	}
	return p, nil
}

// memoryTarget stands in for the API server: it has one object, and merges into it what a writer sends.
type memoryTarget[L metav1.Object, A Configuration[A]] struct {
	writer *writer[L, A]
	// object is nil for none.
	object *unstructured.Unstructured
	steps  []Step
	// failed is an error that no API server would answer with.
	failed error
}

// store takes the object of a request, and has the request refer to a copy of the writer's type.
func (m *memoryTarget[L, A]) store(req *Request) (err error) {
	if req.Live == nil {
		return nil
	}
	want, err := m.writer.intentOf(req)
	if err != nil {
		return err
	}
	if m.object, err = m.writer.decodedLive(req.Live, want); err != nil {
		return err
	}
	req.Live, err = m.typed()
	return err
}

// typed returns the object as a typed client does.
func (m *memoryTarget[L, A]) typed() (live L, err error) {
	live = reflect.New(reflect.TypeFor[L]().Elem()).Interface().(L)
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(m.object.Object, live)
	return live, err
}

// apply is Target.Apply.
func (m *memoryTarget[L, A]) apply(_ context.Context, _ string, config A, _ metav1.ApplyOptions) (live L, err error) {
	content, err := withoutPreconditions(config)
	if err != nil {
		return live, err
	}
	m.steps = append(m.steps, Step{Apply: content.Object})
	merged, err := m.writer.merge(m.object, content)
	if err != nil {
		if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
			m.failed = err
		}
		return live, err
	}
	m.object = merged
	return m.typed()
}

// edit is Edits.Send.
func (m *memoryTarget[L, A]) edit(_ context.Context, _, _ string, patch []byte, _ metav1.PatchOptions) (live L, err error) {
	m.steps = append(m.steps, Step{})
	if m.object, err = ownership.Patched(m.object, patch); err != nil {
		m.failed = err
		return live, err
	}
	return m.typed()
}

// foresee returns the conflict that the API server would answer an apply with, if the object is disputed; nil for none. The API
// server's own code finds it in the object that the apply is bound to, so the apply need not be sent. The API server decides
// whatever else an apply may end with. An Excluded leaves out what is contested, and an intent that wants nothing is contested by nobody.
func (w *writer[L, A]) foresee(a *attempt[L, A], config A) error {
	if !a.disputed || a.Excluded != nil || a.empty {
		return nil
	}
	want, err := withoutPreconditions(config)
	if err != nil {
		return err
	}
	object, err := w.decodedLive(a.live, config)
	if err != nil {
		return err
	}
	if _, err := w.merge(object, want); apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return err
	}
	return nil
}

// merge is ownership.Merge for what the writer applies.
func (w *writer[L, A]) merge(object, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	empty, err := decoded(reflect.New(reflect.TypeFor[L]().Elem()).Interface())
	if err != nil {
		return nil, err
	}
	return ownership.Merge(w.target.Schema, empty.Object, object, want, w.manager.Name, w.manager.Subresource)
}

// withoutPreconditions returns a configuration as it would be read from a request, without the version and UID that bind it to one
// object.
func withoutPreconditions(config any) (*unstructured.Unstructured, error) {
	content, err := decoded(config)
	if err != nil {
		return nil, err
	}
	content.SetUID("")
	content.SetResourceVersion("")
	return content, nil
}
