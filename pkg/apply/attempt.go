// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// attempt is a request on its way.
type attempt[L, A any] struct {
	Request
	// live is the object as it was seen last, or as our own last request left it; nil when it does not exist, or whole is
	// false and it was not read.
	live  L
	whole bool
	// disputed is that of entry.isDisputed, and kept the whole object if the request cache has it.
	disputed bool
	kept     metav1.Object
	// rendered is the intent; where parts of it may be left to others, want is a copy of it.
	rendered A
	// want is the intent without what is left to others, to be completed by what is not rendered: source, references and
	// preconditions.
	want A
	// intent is the digest of what was rendered, without what is left to others, and of the names of the references; digest is
	// that of what is owned once want is applied, without source and references.
	intent, digest digest
	// empty reports that it names no field.
	empty bool
	// last is the earlier outcome of the same intent.
	last entry
	// unrecorded is the conflict about a number that an unknown client has set, nil for none; taken is that number if it is taken.
	unrecorded *ConflictError
	taken      []ownership.Moved
	// untaken is the conflict about fields that the request takes, once the edit that was to take them is refused.
	untaken *ConflictError
	// now is when the request was made.
	now time.Time
	out Outcome
}

// asked returns what the request asks for besides the intent.
func (a *attempt[L, A]) asked() asked {
	return asked{inherit: a.Inherit != nil, take: a.Take != nil, confirm: a.Confirm, unrecorded: a.unrecorded != nil}
}

// version returns the resourceVersion of the object that was seen last; empty when there was none.
func (a *attempt[L, A]) version() string {
	if a.out.Live == nil {
		return ""
	}
	return a.out.Live.GetResourceVersion()
}

// begin prepares an attempt at a request, and recalls the earlier outcome of the same intent.
func (w *writer[L, A]) begin(requests *requestCache, req Request) (*attempt[L, A], error) {
	a := &attempt[L, A]{Request: req, out: Outcome{
		Writer: w.manager.Name, Object: req.Object, Action: ActionNone, Live: req.Live,
	}, now: requests.clock.Now()}
	if err := w.prepare(a); err != nil {
		return a, err
	}
	w.noteUnrecorded(a)
	last := requests.recall(w.manager.Name, req.Object)
	if last.intent == a.intent {
		a.last = last
	}
	if a.out.Live != nil && last.isDisputed(identify(a.out.Live.GetUID()), w.settled(a)) {
		a.disputed, a.kept = true, requests.kept(req.Object, a.out.Live)
	}
	return a, nil
}

// intentOf returns the intent of a request in the writer's type.
func (*writer[L, A]) intentOf(req *Request) (A, error) {
	config, ok := req.Config.(A)
	if !ok {
		return config, fmt.Errorf("the intent is a %T, this writer takes %T", req.Config, config)
	}
	return config, nil
}

// withOwnIntent has the request refer to a copy of its intent, which may be modified.
func (w *writer[L, A]) withOwnIntent(req Request) (Request, error) {
	config, err := w.intentOf(&req)
	if err != nil {
		return req, err
	}
	body, err := marshal(config)
	if err != nil {
		return req, err
	}
	copied := reflect.New(reflect.TypeFor[A]().Elem()).Interface().(A)
	req.Config = copied
	return req, json.Unmarshal(body, copied)
}

// prepare splits the request into its parts.
func (w *writer[L, A]) prepare(a *attempt[L, A]) (err error) {
	if a.want, err = w.intentOf(&a.Request); err != nil {
		return err
	}
	var ok bool
	switch {
	case a.Live != nil:
		if a.live, ok = a.Live.(L); !ok {
			return fmt.Errorf("the object is a %T, this writer takes %T", a.Live, a.live)
		}
		a.whole = true
	case a.State != nil:
		a.out.Live = a.State.Object
	}
	if err := w.refer(a); err != nil {
		return err
	}
	a.yieldExcluded()
	a.rendered = a.want
	if err := w.identify(a); err != nil || a.out.Live == nil || a.Yield == nil || a.empty && !w.owns(a) {
		return err
	}
	if err := w.leave(a); err != nil {
		return err
	}
	return w.identify(a)
}

// yieldExcluded makes the request yield the fields that it leaves out.
func (a *attempt[L, A]) yieldExcluded() {
	if a.Excluded == nil || a.Excluded.Conflict == nil {
		return
	}
	excluded, yield := a.Excluded, a.Yield
	a.Yield = func(path fieldpath.Path) bool { return excluded.leaves(path) || yield != nil && yield(path) }
}
