// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
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

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// requestCache remembers, for each writer and object, the last intent and its outcome.
type requestCache struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[claimKey]entry
	// conflicts are those that writers have met and that stand. There are few.
	conflicts map[claimKey]standingConflict
	// writers are those that have entries.
	writers map[string]bool
	// disputed has the whole objects about which a writer is in dispute, see entry.isDisputed: at most mostDisputed.
	disputed *lru.Cache
}

// mostDisputed is how many disputed objects are kept. Each takes some 10 KiB. Any other is read where the whole object is
// needed.
const mostDisputed = 128

// mostDisputedBytes is how large an object is that is kept at most. Clients can make any object a hundred times as large.
const mostDisputedBytes = 64 << 10

// dispute keeps an object about which a writer is in dispute, unless it is too large.
func (m *requestCache) dispute(ref ObjectRef, live metav1.Object) {
	if sized, ok := live.(interface{ Size() int }); ok && sized.Size() > mostDisputedBytes {
		m.disputed.Remove(ref)
		return
	}
	m.disputed.Add(ref, live)
}

// claimKey is a writer's part of an object. excluded is set for a conflict that does not block the writer, because it leaves the contested
// fields out.
type claimKey struct {
	writer   string
	object   ObjectRef
	excluded bool
}

// standingConflict is a conflict, and the object and the claims in which it was found, as in entry.
type standingConflict struct {
	*ConflictError
	object, claims uint64
}

// entry is the end of one write. There may be tens of thousands.
type entry struct {
	// object identifies the object, see identify; 0 when it did not exist.
	object uint64
	// intent is what was to be written.
	intent digest
	// claims is that of ownership.EntryHash after a success, and of ownership.EntriesHash at a refusal.
	claims uint64
	// owned and kept are, after a success, those of claimState. A refusal leaves owned as it was: the writer owned that of the object.
	owned digest
	kept  any
	// refused is nil after a success.
	refused *refusalEntry
	// undone counts how often the write was made again because other clients had undone it; nil for one that was not made.
	undone *undone
}

// refusalEntry is a refusal that is remembered, and how long it stands.
type refusalEntry struct {
	err error
	// until is when the write is sent again although nothing has changed; zero for a conflict, which waits for a change.
	until time.Time
	// wait is how long the wait is that ends then.
	wait time.Duration
	// asked is what was asked for besides the intent.
	asked requestFlags
	// version is the resourceVersion that the write was bound to; empty for a creation.
	version string
	// contested has the paths of a conflict's fields, as far as managers hold them.
	contested []fieldpath.Path
}

// isDisputed reports whether the writer is in conflict about an object, or waits because others undo what it writes, or another client has
// changed what the writer owned after its last write. A watch event that overtakes the answer to the writer's own apply looks like such a
// change.
func (e *entry) isDisputed(object, entryHash uint64) bool {
	if e.object != object {
		return false
	}
	if e.refused != nil {
		class := ClassOf(e.refused.err)
		return class == ClassConflict || class == ClassUndone
	}
	return e.claims != entryHash
}

// sees reports whether a refusal was met with the same object and the same claims.
func (e *entry) sees(now entry) bool { return e.object == now.object && e.claims == now.claims }

// requestFlags are what a request asks for besides its intent, as far as it changes what is sent.
type requestFlags struct{ inherit, take, confirm, unrecorded bool }

// left returns what is left of the wait; 0 when there is none, or when it is over.
func (r *refusalEntry) left(now time.Time) time.Duration {
	if r == nil || r.until.IsZero() {
		return 0
	}
	return max(0, r.until.Sub(now))
}

// after completes a refusal that follows on another one of the same write, nil for none: whether it is repeated, and how
// long it stands unless that is known. A refusal before the end of a wait, after a change or in another pass, neither prolongs the wait nor counts as repeated,
// so events do not make the waits longer. A refusal long after the wait counts as the first: the obstacle may have ended in between,
// without an attempt that found it gone. fresh reports that the refusal begins a wait.
func (r *refusalEntry) after(before *refusalEntry, now time.Time) (fresh bool) {
	refusal, ok := errors.AsType[*Refusal](r.err)
	if !ok {
		return true
	}
	policy := Policies()[refusal.Class]
	if policy.FirstWait == 0 {
		return true
	}
	if !r.until.IsZero() {
		return before == nil || !before.until.Equal(r.until)
	}
	r.wait = policy.FirstWait
	// A busy controller may try again later than a short wait asks, but not later by the longest wait.
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
	return &requestCache{
		clock:   clock,
		entries: map[claimKey]entry{}, conflicts: map[claimKey]standingConflict{}, writers: map[string]bool{}, disputed: lru.New(mostDisputed),
	}
}

// noteExcluded remembers a conflict about the fields that are left out, or that there is none. It reports whether there is one
// that was not remembered already.
func (m *requestCache) noteExcluded(writer string, ref ObjectRef, conflict *ConflictError) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := claimKey{writer, ref, true}
	if conflict == nil {
		delete(m.conflicts, at)
		return false
	}
	before, known := m.conflicts[at]
	m.conflicts[at] = standingConflict{ConflictError: conflict}
	return !known || !slices.EqualFunc(before.Fields, conflict.Fields, func(a, b FieldConflict) bool {
		return a.Path == b.Path && slices.Equal(a.Owners, b.Owners)
	})
}

// recall returns what is remembered; the zero entry for nothing.
func (m *requestCache) recall(writer string, ref ObjectRef) entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[claimKey{writer, ref, false}]
}

// remember replaces what is remembered. A success ends the conflict of the writer.
func (m *requestCache) remember(writer string, ref ObjectRef, what entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := claimKey{writer, ref, false}
	if what.refused == nil {
		delete(m.conflicts, at)
	}
	m.entries[at], m.writers[writer] = what, true
}

// refuse remembers a refusal and begins, or continues, its wait. fresh reports that it was not remembered already. untaken is the conflict
// that stands because the edit that was to take its fields is refused, nil for none.
//
// began is what was remembered when the attempt began, the zero entry for nothing. An attempt to take contested fields is refused
// twice: with the conflict, which has no wait, and then for the reason why the fields cannot be taken. The latter follows on the
// refusal that the attempt before it ended with; otherwise it would begin again each time, and never wait any longer.
func (m *requestCache) refuse(writer string, ref ObjectRef, what, began entry, untaken *ConflictError) (fresh bool) {
	var before *refusalEntry
	last := m.recall(writer, ref)
	// Two sources may each have an intent for an object that does not exist. Their attempts share one wait; otherwise the attempt of one
	// would begin the wait of the other anew each time.
	if last.object == what.object && (last.intent == what.intent || what.object == 0) {
		before = last.refused
	}
	if before != nil && before.until.IsZero() && began.object == what.object && began.intent == what.intent && began.refused != nil {
		before = began.refused
	}
	fresh = what.refused.after(before, m.clock.Now())
	m.remember(writer, ref, what)

	m.mu.Lock()
	defer m.mu.Unlock()
	conflict, contested := errors.AsType[*ConflictError](what.refused.err)
	if !contested {
		conflict = untaken
	}
	// After a refusal for another reason, which is over in a moment or is about rights, the writer may still be in conflict.
	class := ClassOf(what.refused.err)
	if at := (claimKey{writer, ref, false}); conflict != nil {
		m.conflicts[at] = standingConflict{conflict, what.object, what.claims}
	} else if last.object != what.object || !Policies()[class].Passes && class != ClassForbidden {
		delete(m.conflicts, at)
	}
	return fresh
}

func (m *requestCache) forget(writer string, ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, claimKey{writer, ref, false})
	delete(m.conflicts, claimKey{writer, ref, false})
}

func (m *requestCache) forgetObject(ref ObjectRef) {
	m.forgetConflicts(ref)
	m.mu.Lock()
	defer m.mu.Unlock()
	for writer := range m.writers {
		delete(m.entries, claimKey{writer, ref, false})
	}
	m.disputed.Remove(ref)
}

func (m *requestCache) forgetConflicts(ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.conflicts, func(at claimKey, _ standingConflict) bool { return at.object == ref })
}

// kept returns a disputed object that is kept in the version that a state has; nil for none.
func (m *requestCache) kept(ref ObjectRef, state metav1.Object) metav1.Object {
	found, _ := m.disputed.Get(ref)
	if live, ok := found.(metav1.Object); ok && live.GetUID() == state.GetUID() && live.GetResourceVersion() == state.GetResourceVersion() {
		return live
	}
	return nil
}

// Conflicts returns the conflicts that stand.
func (a *Applier) Conflicts() (all []*ConflictError) {
	a.requests.mu.Lock()
	defer a.requests.mu.Unlock()
	for _, c := range a.requests.conflicts {
		all = append(all, c.ConflictError)
	}
	return all
}

// StandingConflict returns the conflict in which a writer is about an object; nil for none. The conflict stands while a later write has no
// answer.
func (a *Applier) StandingConflict(writer string, ref ObjectRef) *ConflictError {
	a.requests.mu.Lock()
	defer a.requests.mu.Unlock()
	return a.requests.conflicts[claimKey{writer, ref, false}].ConflictError
}

// ReviewConflict is StandingConflict for a writer that makes no attempt to write an object, whose state is as given; nil for an object
// that does not exist. It forgets a conflict that may have ended since, as only an attempt can find out: the object, the managers that
// own its fields, or its values have changed. known is false if the applier has made no attempt at all.
func (a *Applier) ReviewConflict(writer string, ref ObjectRef, state *State) (conflict *ConflictError, known bool) {
	var object, claims uint64
	if state != nil {
		object, claims = identify(state.Object.GetUID()), state.entriesHash
	}
	m, at := a.requests, claimKey{writer, ref, false}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known = m.entries[at]
	found, contested := m.conflicts[at]
	if known && contested && (found.object != object || found.claims != claims) {
		m.entries[at] = entry{}
		delete(m.conflicts, at)
		return nil, true
	}
	return found.ConflictError, known || state == nil
}

// pace returns a refusal while it is too early to make a write again that other clients keep undoing: it was made, and the intent is the
// same, or the object does not exist; and the request takes nothing, see Writer.take, and asks for nothing else. It counts an
// attempt once. A status is paced by its author, who decides when it is worth a write.
func (w *writer[L, A]) pace(a *attempt[L, A]) error {
	if a.undone != nil || w.manager.Subresource != "" || a.Confirm || a.LetGo {
		return nil
	}
	if a.last.undone == nil || !a.last.undone.made {
		return nil
	}
	if refused := a.last.refused; refused != nil && ClassOf(refused.err) == ClassAltered && a.last.sees(w.refusedNow(a)) {
		return nil // Nobody has undone it. The write is made again to see whether admission lets it be now.
	}
	left, next := a.last.undone.left(w.target.undoneWait(), a.requests.clock.Now())
	if left == 0 {
		a.undone = next
		return nil
	}
	refusal := &Refusal{
		Class: ClassUndone, Writer: w.manager.Name, Object: a.Object,
		Reason: "other clients undo again and again what Freehold writes, so it waits before it writes that again",
	}
	if !a.whole {
		return refusal
	}
	_, wanted, err := w.typedIntent(a.want)
	owned, unread := ownership.Fields(ownership.ApplyEntry(a.live, w.manager.Name, w.manager.Subresource))
	if refusal.Twin = err == nil && unread == nil && wanted.Difference(ownership.Unowned()).Difference(owned).Empty(); refusal.Twin {
		refusal.Reason = "another process writes other values again and again under the field manager " + w.manager.Name + ", as a second operator " +
			"with other settings does, so Freehold waits before it writes its own again"
	}
	return refusal
}

// done ends an attempt at an intent that the object matches already.
func (w *writer[L, A]) done(a *attempt[L, A]) Outcome {
	if w.owns(a) {
		w.remember(a)
	} else {
		a.requests.forget(a.key, a.Object) // The intent names nothing and the writer owns nothing, which the next attempt finds out as fast.
	}
	return a.out
}

// remember records that the object is as the intent wants it.
func (w *writer[L, A]) remember(a *attempt[L, A]) {
	what := entry{object: a.object(), intent: a.intent, claims: w.entryHash(a), owned: a.digest, undone: cmp.Or(a.undone, a.last.undone, madeOnce).because(true)}
	if w.target.Keep != nil {
		what.kept = w.target.Keep(a.want)
	}
	a.requests.remember(a.key, a.Object, what)
}

// refused ends an attempt that the API server has refused, or that is paced.
func (w *writer[L, A]) refused(a *attempt[L, A], refusal error) Outcome {
	a.out.Err = refusal
	if fresh := w.hold(a); fresh || ClassOf(refusal) != ClassUndone {
		a.out.Action = ActionRefused
	}
	return a.out
}

// refuse ends an attempt without a request.
func (w *writer[L, A]) refuse(a *attempt[L, A], class Class, reason string) Outcome {
	a.out.Err = &Refusal{Class: class, Writer: w.manager.Name, Object: a.Object, Reason: oneLine(reason)}
	if w.hold(a) {
		a.out.Action = ActionRefused
	}
	return a.out
}

// hold remembers the refusal that an attempt has ended with, for as long as it stands. fresh reports that it was not remembered already.
func (w *writer[L, A]) hold(a *attempt[L, A]) (fresh bool) {
	what := w.refusedNow(a)
	if ClassOf(a.out.Err) == ClassUndone {
		now := a.requests.clock.Now()
		left, _ := a.last.undone.left(w.target.undoneWait(), now)
		what.refused.until = now.Add(left)
	}
	if conflict, contested := errors.AsType[*ConflictError](a.out.Err); contested && a.whole {
		what.refused.contested = ownership.Paths(a.live, conflict.names)
		if a.State != nil {
			a.requests.dispute(a.Object, a.live)
		}
	}
	fresh = a.requests.refuse(a.key, a.Object, what, a.last, a.untaken)
	a.out.RetryAfter = what.refused.left(a.requests.clock.Now())
	return fresh
}
