// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// requestCache remembers, for each writer and object, the last intent and its outcome.
type requestCache struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// entries are few for an object, most often one: a slice of them takes a tenth of the memory of a map.
	entries map[ObjectRef][]remembered
	// excluded are the conflicts about fields left out of intents whose rest is written. There are few.
	excluded map[place]*ConflictError
	// disputed has the whole objects about which a writer is in dispute, see entry.isDisputed: at most mostDisputed.
	disputed *lru.Cache
}

// mostDisputed is how many disputed objects are kept. Each takes some 10 KiB. Any other is read where the whole object is
// needed.
const mostDisputed = 128

// place is a writer's part of an object.
type place struct {
	writer string
	object ObjectRef
}

// remembered is the entry of one writer. There is one for each object of each MCPServer, so each is small.
type remembered struct {
	writer string
	entry
}

// entry is the end of one write.
type entry struct {
	// object is that of identify; 0 when there was none.
	object uint64
	// intent is what was to be written.
	intent digest
	// claims is that of ownership.EntryHash after a success, and of ownership.EntriesHash at a refusal.
	claims uint64
	// owned and kept are, after a success, those of claimState.
	owned digest
	kept  any
	// refused is nil after a success.
	refused *refused
}

// refused is a refusal that is remembered, and how long it stands.
type refused struct {
	err error
	// until is when the write is sent again although nothing has changed; zero for a conflict, which waits for a change.
	until time.Time
	// wait is how long the wait is that ends then.
	wait time.Duration
	// asked is what was asked for besides the intent.
	asked asked
	// version is the resourceVersion that the write was bound to; empty for a creation.
	version string
	// conflict is the refusal itself, or the conflict before it that still stands, or about which nothing has been learned since. Nil
	// for none.
	conflict *ConflictError
	// conflictClaims are the claims that conflict was found in, as in entry.claims.
	conflictClaims uint64
	// contested has the paths of a conflict's fields, as far as managers hold them.
	contested []fieldpath.Path
}

// isDisputed reports whether a writer that ended its last write so is in conflict, or another client has changed what the writer
// owned. A watch event that overtakes the answer to the writer's own apply looks like such a change.
func (e *entry) isDisputed(object, settled uint64) bool {
	if e.object != object {
		return false
	}
	if e.refused != nil {
		return ClassOf(e.refused.err) == ClassConflict
	}
	return e.claims != settled
}

// asked is what a request asks for besides its intent, as far as it changes what is sent.
type asked struct{ inherit, take, confirm, unrecorded bool }

// left returns what is left of the wait; 0 when there is none, or when it is over.
func (r *refused) left(now time.Time) time.Duration {
	if r == nil || r.until.IsZero() {
		return 0
	}
	return max(0, r.until.Sub(now))
}

// after completes a refusal that follows on another one of the same write, nil for none: whether it is repeated, and how
// long it stands. An attempt before the end of a wait, after a change or another pass, neither prolongs the wait nor
// repeats the refusal; so no event drives the waits up. One that comes long after the wait is a first one: what ended in between
// need not have been seen. fresh reports that it begins a wait.
func (r *refused) after(before *refused, now time.Time) (fresh bool) {
	refusal, ok := errors.AsType[*Refusal](r.err)
	if !ok {
		return true
	}
	policy := Policies()[refusal.Class]
	if policy.Retry == RetryOnChange {
		return true
	}
	r.wait = policy.FirstWait
	// A busy controller is late by more than a short wait, but not by the longest one.
	if before != nil && !before.until.IsZero() && !now.After(before.until.Add(LongestWait)) {
		last, _ := errors.AsType[*Refusal](before.err)
		switch waits := now.Before(before.until); {
		case waits && last.Class == refusal.Class:
			r.until, r.wait, refusal.Repeated = before.until, before.wait, last.Repeated
			return false
		case waits:
			r.wait, refusal.Repeated = max(r.wait, before.wait), last.Repeated
		default:
			r.wait = min(max(r.wait, 2*before.wait), LongestWait)
			refusal.Repeated = r.wait >= policy.ToldFrom
		}
	}
	r.until = now.Add(r.wait)
	return true
}

// digest identifies a configuration, as it was rendered.
type digest [16]byte

func digestOf(rendered []byte) (d digest) {
	sum := sha256.Sum256(rendered)
	copy(d[:], sum[:])
	return d
}

var seed = maphash.MakeSeed()

// identify returns a number for an object that has this UID. It is never 0.
func identify(uid types.UID) uint64 { return maphash.String(seed, string(uid)) | 1 }

func newRequestCache(clock clock.PassiveClock) *requestCache {
	return &requestCache{clock: clock, entries: map[ObjectRef][]remembered{}, excluded: map[place]*ConflictError{}, disputed: lru.New(mostDisputed)}
}

// noteExcluded remembers a conflict about the fields that are left out, or that there is none. It reports whether there is one
// that was not remembered already.
func (m *requestCache) noteExcluded(writer string, ref ObjectRef, conflict *ConflictError) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if conflict == nil {
		delete(m.excluded, place{writer, ref})
		return false
	}
	before := m.excluded[place{writer, ref}]
	m.excluded[place{writer, ref}] = conflict
	return before == nil || !slices.EqualFunc(before.Fields, conflict.Fields, func(a, b FieldConflict) bool {
		return a.Path == b.Path && slices.Equal(a.Owners, b.Owners)
	})
}

// recall returns what is remembered; the zero entry for nothing.
func (m *requestCache) recall(writer string, ref ObjectRef) entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		return m.entries[ref][i].entry
	}
	return entry{}
}

func (m *requestCache) remember(writer string, ref ObjectRef, what entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		m.entries[ref][i].entry = what
		return
	}
	m.entries[ref] = append(m.entries[ref], remembered{writer, what})
}

// refuse remembers a refusal and begins, or continues, its wait. fresh reports that it was not remembered already.
//
// began is what was remembered when the attempt began, the zero entry for nothing. An attempt to take contested fields is refused
// twice: with the conflict, which has no wait, and then for the reason why the fields cannot be taken. The latter follows on the
// refusal that the attempt before it ended with; otherwise it would begin again each time, and never wait any longer.
func (m *requestCache) refuse(writer string, ref ObjectRef, what, began entry) (fresh bool) {
	var before *refused
	last := m.recall(writer, ref)
	// Two owners may want a name that is free, with an intent each. Their attempts share a wait, which would never grow otherwise.
	if last.object == what.object && (last.intent == what.intent || what.object == 0) {
		before = last.refused
	}
	if before != nil && before.until.IsZero() && began.object == what.object && began.intent == what.intent && began.refused != nil {
		before = began.refused
	}
	if conflict, contested := errors.AsType[*ConflictError](what.refused.err); contested {
		what.refused.conflict = conflict
	}
	what.refused.conflictClaims = what.claims
	if what.refused.conflict == nil && last.object == what.object && last.refused != nil && saysNothingOfFields(what.refused.err) {
		what.refused.conflict, what.refused.conflictClaims = last.refused.conflict, last.refused.conflictClaims
	}
	fresh = what.refused.after(before, m.clock.Now())
	m.remember(writer, ref, what)
	return fresh
}

// saysNothingOfFields reports whether a write may be in conflict although it was refused for another reason.
func saysNothingOfFields(refusal error) bool {
	class := ClassOf(refusal)
	return Policies()[class].Passes || class == ClassForbidden
}

// review returns the conflict in which a writer is, if the object and its claims are those that it was found in, and forgets how the
// writer's last write ended if they are not. known reports whether there was one.
func (m *requestCache) review(writer string, ref ObjectRef, object, claims uint64) (conflict *ConflictError, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(writer, ref)
	if i < 0 {
		return nil, false
	}
	last := &m.entries[ref][i].entry
	switch {
	case last.refused == nil || last.refused.conflict == nil:
		return nil, true
	case last.object != object || last.refused.conflictClaims != claims:
		*last = entry{}
		return nil, true
	}
	return last.refused.conflict, true
}

func (m *requestCache) forget(writer string, ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		m.entries[ref] = slices.Delete(m.entries[ref], i, i+1)
	}
}

func (m *requestCache) forgetObject(ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, ref)
	maps.DeleteFunc(m.excluded, func(at place, _ *ConflictError) bool { return at.object == ref })
	m.disputed.Remove(ref)
}

// kept returns a disputed object that is kept in the version that a state has; nil for none.
func (m *requestCache) kept(ref ObjectRef, state metav1.Object) metav1.Object {
	found, _ := m.disputed.Get(ref)
	if live, ok := found.(metav1.Object); ok && live.GetUID() == state.GetUID() && live.GetResourceVersion() == state.GetResourceVersion() {
		return live
	}
	return nil
}

// conflicts returns the standing conflicts: refusals, and those for which fields are left out.
func (m *requestCache) conflicts() []*ConflictError {
	m.mu.Lock()
	defer m.mu.Unlock()
	var standing []*ConflictError
	for _, entries := range m.entries {
		for i := range entries {
			if r := entries[i].refused; r != nil && r.conflict != nil {
				standing = append(standing, r.conflict)
			}
		}
	}
	for _, conflict := range m.excluded {
		standing = append(standing, conflict)
	}
	return standing
}

// find returns the place of a writer's entry of an object, or -1.
func (m *requestCache) find(writer string, ref ObjectRef) int {
	return slices.IndexFunc(m.entries[ref], func(r remembered) bool { return r.writer == writer })
}
