// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Configuration is what a generated apply configuration of an object offers.
type Configuration[A any] interface {
	runtime.ApplyConfiguration
	WithUID(types.UID) A
	WithResourceVersion(string) A
	WithAnnotations(map[string]string) A
}

// Target says how objects of one kind are written and read back. L is the object's type, A that of its apply
// configuration; both are pointers to structs.
type Target[L metav1.Object, A Configuration[A]] struct {
	// Apply sends the configuration: the method Apply, or ApplyStatus, of a typed client of the namespace.
	Apply func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error)
	// Extract returns what the manager owns: a generated ExtractX, or ExtractXStatus, function.
	Extract func(live L, manager string) (A, error)
	// Settle, if set, may take values over into an intent from what the manager already owns, where a
	// difference is not worth a write. It must be a pure function of its arguments.
	Settle func(want, owned A)
	// StampSource adds SourceAnnotation to the intent, and holds writes from an older generation back.
	StampSource bool
}

// Writer writes the intents of one field manager to the objects of one kind.
type Writer interface {
	// Name of the field manager.
	Name() string
	// sync brings one object in line with an intent.
	sync(ctx context.Context, memo *memo, req Request) Outcome
}

// Request is one intent and the object that it is about.
type Request struct {
	// Object to write.
	Object ObjectRef
	// Live is the object as it was seen last, unmodified and with its managedFields; nil when it does not exist.
	Live metav1.Object
	// Config is the intent, of the type of the writer's target. The request takes it over: it is modified.
	Config runtime.ApplyConfiguration
	// Source that the intent was rendered from; used by targets that stamp it.
	Source Source
	// Confirm sends the intent even when the object is already so. That changes nothing; whether the API server accepts
	// it tells whether the object is still the one that was seen.
	Confirm bool
	// LetGo allows the write although the object is being deleted. Only a writer that gives up a finalizer
	// may say so.
	LetGo bool
}

// Action is what was done.
type Action string

const (
	// ActionNone means that no request was sent.
	ActionNone Action = "None"
	// ActionCreated means that the object was created.
	ActionCreated Action = "Created"
	// ActionApplied means that the intent was applied to an existing object.
	ActionApplied Action = "Applied"
	// ActionRefused means that a request was sent and refused.
	ActionRefused Action = "Refused"
)

// Outcome is the end of a request.
type Outcome struct {
	// Writer is the field manager.
	Writer string
	// Object that the request was about.
	Object ObjectRef
	// Action says what was done.
	Action Action
	// Err is nil when the object is as the intent wants it. Otherwise it is a *Refusal or a *ConflictError.
	Err error
	// Live is the object after the write, or as it was given when nothing was sent.
	Live metav1.Object
}

type writer[L metav1.Object, A Configuration[A]] struct {
	manager fieldmanager.Writer
	target  Target[L, A]
}

// NewWriter returns the writer of a registered field manager. It fails when the registry does not know the
// manager for that kind: what is not registered has no claim and must not write.
func NewWriter[L metav1.Object, A Configuration[A]](
	registry *fieldmanager.Registry, manager fieldmanager.Writer, target Target[L, A],
) (Writer, error) {
	if _, ok := registry.Writer(manager.Name, manager.Kind, manager.Subresource); !ok {
		return nil, fmt.Errorf("field manager %q is not registered for %s", manager.Name, manager.Kind)
	}
	return &writer[L, A]{manager: manager, target: target}, nil
}

func (w *writer[L, A]) Name() string { return w.manager.Name }

func (w *writer[L, A]) sync(ctx context.Context, memo *memo, req Request) Outcome {
	out := Outcome{Writer: w.manager.Name, Object: req.Object, Action: ActionNone, Live: req.Live}
	want, ok := req.Config.(A)
	if !ok {
		out.Err = w.refuse(req, ClassTerminal, fmt.Sprintf("the intent is a %T, this writer takes %T", req.Config, want))
		return out
	}
	rendered, err := json.Marshal(want)
	if err != nil {
		out.Err = w.refuse(req, ClassTerminal, "the intent cannot be encoded: "+err.Error())
		return out
	}
	last, _ := memo.recall(w.manager.Name, req.Object)
	a := attempt[A]{Request: req, want: want, intent: sha256.Sum256(rendered)}
	if last.intent != a.intent {
		last = memory{}
	}
	if req.Live == nil {
		return w.create(ctx, memo, a, last, out)
	}
	live, ok := req.Live.(L)
	if !ok {
		out.Err = w.refuse(req, ClassTerminal, fmt.Sprintf("the object is a %T, this writer takes %T", req.Live, live))
		return out
	}
	return w.change(ctx, memo, a, last, live, out)
}

// attempt is a request on its way.
type attempt[A any] struct {
	Request
	// want is the intent, to be completed by what is not rendered: source and preconditions.
	want A
	// intent is the digest of what was rendered.
	intent [sha256.Size]byte
}

// create writes an object that does not exist. last is what became of the same intent before.
func (w *writer[L, A]) create(ctx context.Context, memo *memo, a attempt[A], last memory, out Outcome) Outcome {
	if last.refusal != nil && last.uid == "" {
		out.Err = last.refusal
		return out
	}
	omitZeros(a.want, *new(L))
	if w.target.StampSource {
		a.want.WithAnnotations(map[string]string{SourceAnnotation: a.Source.String()})
	}
	// On a missing object a resourceVersion is no precondition and the object is created; on an existing one this
	// version is always outdated. So the apply can create and nothing else.
	a.want.WithResourceVersion("1")
	return w.send(ctx, memo, a)
}

// change brings an existing object in line. last is what became of the same intent before.
func (w *writer[L, A]) change(ctx context.Context, memo *memo, a attempt[A], last memory, live L, out Outcome) Outcome {
	if live.GetDeletionTimestamp() != nil && !a.LetGo {
		out.Err = w.refuse(a.Request, ClassGone, "it is being deleted")
		return out
	}
	if w.target.StampSource && a.Source.staleAgainst(live) {
		out.Err = w.refuse(a.Request, ClassStale, fmt.Sprintf("it was written from %s, newer than our generation %d",
			live.GetAnnotations()[SourceAnnotation], a.Source.Generation))
		return out
	}
	claim := ownership.Fingerprint(ownership.ApplyEntry(live, w.manager.Name, w.manager.Subresource))
	if last.uid != "" && last.uid == live.GetUID() {
		// Who has let go has nothing left to write. The API server answers the write that ends an object with the
		// resourceVersion before it, so a cache that does not show the end yet looks as if it had caught up.
		if last.refusal == nil && (last.claim == claim || a.LetGo) && !a.Confirm {
			return out
		}
		if last.refusal != nil && last.standing == ownership.Standing(live) {
			out.Err = last.refusal
			return out
		}
	}
	omitZeros(a.want, live)
	same, err := w.compare(a.want, live, claim != 0, a.Source)
	if err != nil {
		out.Err = w.refuse(a.Request, ClassTerminal, err.Error())
		return out
	}
	if same && !a.Confirm {
		memo.remember(w.manager.Name, a.Object, memory{uid: live.GetUID(), intent: a.intent, claim: claim})
		return out
	}
	a.want.WithUID(live.GetUID()).WithResourceVersion(live.GetResourceVersion())
	return w.send(ctx, memo, a)
}

// compare tells whether the manager already owns just what it wants. It completes the intent: by what Settle
// takes over, and by the source, which stays the one that is live unless something else differs.
func (w *writer[L, A]) compare(want A, live L, owns bool, source Source) (same bool, err error) {
	if owns {
		owned, err := w.target.Extract(live, w.manager.Name)
		if err != nil {
			return false, fmt.Errorf("the fields owned by %s cannot be read: %w", w.manager.Name, err)
		}
		if w.target.Settle != nil {
			w.target.Settle(want, owned)
		}
		if w.target.StampSource {
			// Without a source of ours on the object the comparison is with the one that we would write, so that
			// one that was taken away comes back.
			expected := source
			if written, stamped := sourceOf(live); stamped && written.UID == source.UID {
				expected = written
			}
			want.WithAnnotations(map[string]string{SourceAnnotation: expected.String()})
		}
		if same, err = equal(want, owned); err != nil || same {
			return same, err
		}
	}
	if w.target.StampSource {
		want.WithAnnotations(map[string]string{SourceAnnotation: source.String()})
	}
	return false, nil
}

// equal compares two configurations by what would be sent.
func equal[A any](a, b A) (bool, error) {
	left, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	right, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(left, right), nil
}

func (w *writer[L, A]) send(ctx context.Context, memo *memo, a attempt[A]) Outcome {
	out := Outcome{Writer: w.manager.Name, Object: a.Object, Action: ActionApplied, Live: a.Live}
	if a.Live == nil {
		out.Action = ActionCreated
	}
	answer, err := w.target.Apply(ctx, a.Object.Namespace, a.want, metav1.ApplyOptions{FieldManager: w.manager.Name})
	if err == nil {
		out.Live = answer
		claim := ownership.Fingerprint(ownership.ApplyEntry(answer, w.manager.Name, w.manager.Subresource))
		memo.remember(w.manager.Name, a.Object, memory{uid: answer.GetUID(), intent: a.intent, claim: claim})
		return out
	}
	out.Action = ActionRefused
	out.Err = classify(err, w.manager.Name, a.Object, a.Live)
	if Policies()[ClassOf(out.Err)].Retry != RetryOnChange {
		memo.forget(w.manager.Name, a.Object)
		return out
	}
	refused := memory{intent: a.intent, refusal: out.Err}
	if a.Live != nil {
		refused.uid, refused.standing = a.Live.GetUID(), ownership.Standing(a.Live)
	}
	memo.remember(w.manager.Name, a.Object, refused)
	return out
}

func (w *writer[L, A]) refuse(req Request, class Class, reason string) error {
	return &Refusal{Class: class, Writer: w.manager.Name, Object: req.Object, Reason: reason}
}
