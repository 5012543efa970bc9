// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is one that a client has begun. It is the body of the answer.
type Watch struct {
	// Client is the name of the client.
	Client string
	// Kind is what it watches, and version that of the path.
	Kind    *Kind
	version string
	// Selects are its selectors, see Request.Selects.
	Selects string

	selection selection
	// since is the version after which it begins, which may be yet to come.
	since uint64
	// protobuf is set where the client gets no JSON.
	protobuf bool
	// bookmarks is set where the client wants them.
	bookmarks bool
	ctx       context.Context //nolint:containedctx // it is that of the HTTP request
	// timers end it, after a bookmark; none where the client has set no time.
	timers []*time.Timer
	// wake is sent to when there may be something to read.
	wake chan struct{}

	mu sync.Mutex
	// frames are events that have not been read. Those before released may be.
	frames   []frame
	released int
	// held is set while events wait for Deliver.
	held bool
	// rest of a frame that is being read.
	rest        []byte
	cut, closed bool
}

// frame is an event as the client reads it, and what it is about.
type frame struct {
	encoded         []byte
	event           watch.EventType
	namespace, name string
}

// watch begins to watch. A version that has expired, or does not come, is an event of the watch. The caller has the lock.
func (s *Server) watch(r *Request, held bool) (*Watch, error) {
	selection, err := r.selection()
	if err != nil {
		return nil, err
	}
	w := &Watch{Client: r.Client, Kind: r.Kind, version: r.Version, Selects: r.Selects(), selection: selection, ctx: r.ctx, wake: make(chan struct{}, 1), held: held}
	w.bookmarks = r.Query.Get("allowWatchBookmarks") == "true"
	if w.since, err = r.version(); err != nil {
		return nil, err
	}
	initial := r.Query.Get("sendInitialEvents") == "true"
	if initial {
		err = s.awaitVersion(r)
	}
	switch {
	case err != nil:
		w.fail(err)
	case initial || w.since == 0:
		for _, o := range s.ordered[r.Kind] {
			if selection.has(access(o.live)) {
				w.send(watch.Added, o)
			}
		}
		if initial {
			w.sendBookmark(s.version, true)
		}
	case w.since < s.floor:
		w.fail(apierrors.NewResourceExpired(fmt.Sprint("too old resource version: ", w.since)))
	default:
		for _, c := range s.changes {
			w.see(c)
		}
	}
	if seconds, _ := strconv.Atoi(r.Query.Get("timeoutSeconds")); seconds > 0 && s.TimeOut {
		w.timeOut(time.Duration(seconds)*time.Second, func() { s.Bookmark(w) })
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// lastBookmark is how long before its end a watch gets a bookmark, as in k8s.io/apiserver.
const lastBookmark = 2 * time.Second

// timeOut ends the watch after some time, and a bookmark before that, if there is time for it.
func (w *Watch) timeOut(after time.Duration, bookmark func()) {
	w.timers = append(w.timers, time.AfterFunc(after, w.Cut))
	if after >= lastBookmark {
		w.timers = append(w.timers, time.AfterFunc(after-lastBookmark, bookmark))
	}
}

// see queues the event of a change, if the watch shows it.
func (w *Watch) see(c change) {
	if c.kind != w.Kind || c.version <= w.since {
		return
	}
	was := c.before != nil && w.selection.has(access(c.before.live))
	is := c.after != nil && w.selection.has(access(c.after.live))
	switch {
	case is && was:
		w.send(watch.Modified, c.after)
	case is:
		w.send(watch.Added, c.after)
	case was && c.after == nil:
		w.send(watch.Deleted, c.ended)
	case was:
		// An object that is no longer selected is shown as it was, with the version at which it left.
		left := c.before.live.DeepCopyObject()
		access(left).SetResourceVersion(strconv.FormatUint(c.version, 10))
		w.send(watch.Deleted, &object{live: left, version: c.version})
	}
}

func (w *Watch) send(event watch.EventType, o *object) {
	w.queue(frame{frameOf(event, w.Kind.in(w.version, o.json())), event, access(o.live).GetNamespace(), access(o.live).GetName()})
}

// sendBookmark sends a version up to which the client has seen all events; after the initial ones with the mark that these were all.
func (w *Watch) sendBookmark(version uint64, afterInitial bool) {
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}
	if afterInitial {
		metadata["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	mark := encode(map[string]any{"apiVersion": w.Kind.GroupVersion().String(), "kind": w.Kind.Kind, "metadata": metadata})
	w.queue(frame{encoded: frameOf(watch.Bookmark, w.Kind.in(w.version, mark)), event: watch.Bookmark})
}

// Bookmark sends the newest version to a watch whose client wants to know it, as an API server does about every minute.
func (s *Server) Bookmark(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.bookmarks && w.since <= s.version {
		w.sendBookmark(s.version, false)
	}
}

// frameOf encodes an event as a client reads it.
func frameOf(event watch.EventType, object []byte) []byte {
	return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", event, object)
}

func (w *Watch) queue(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut || w.closed {
		return
	}
	w.frames = append(w.frames, f)
	if !w.held {
		w.released = len(w.frames)
		w.signal()
	}
}

func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Pending returns how many events wait for Deliver.
func (w *Watch) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames) - w.released
}

// Next describes the event that waits longest for Deliver.
func (w *Watch) Next() (event watch.EventType, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released >= len(w.frames) {
		return "", "", ""
	}
	next := w.frames[w.released]
	return next.event, next.namespace, next.name
}

// Deliver lets the client have the event that waits longest.
func (w *Watch) Deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released < len(w.frames) {
		w.released++
		w.signal()
	}
}

// Hold keeps further events until Deliver is called, or lets go of them.
func (w *Watch) Hold(held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held = held; !held {
		w.released = len(w.frames)
		w.signal()
	}
}

// Cut ends the watch. The client does not get what it has not been given.
func (w *Watch) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames, w.cut = w.frames[:w.released], true
	w.signal()
}

// Expire ends the watch with the error that its version has expired, so that the client lists anew.
func (w *Watch) Expire() { w.fail(apierrors.NewResourceExpired("too old resource version")) }

// fail ends the watch with an error, which waits for nothing.
func (w *Watch) fail(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut || w.closed {
		return
	}
	w.frames = append(w.frames[:w.released], frame{encoded: frameOf(watch.Error, encode(statusOf(why))), event: watch.Error})
	w.released, w.cut = len(w.frames), true
	w.signal()
}

func (w *Watch) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed || w.cut
}

// Read waits for the next event. It is for the client.
func (w *Watch) Read(p []byte) (int, error) {
	for {
		n, err := w.read(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			_ = w.Close()
			return 0, w.ctx.Err()
		}
	}
}

func (w *Watch) read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, io.EOF
	}
	if len(w.rest) == 0 {
		if w.released == 0 {
			if w.cut {
				return 0, io.EOF
			}
			return 0, nil
		}
		w.rest = w.frames[0].encoded
		if w.protobuf {
			w.rest = frameToProtobuf(w.rest)
		}
		w.frames[0] = frame{} // What is left of the slice holds it no longer.
		w.frames, w.released = w.frames[1:], w.released-1
	}
	n := copy(p, w.rest)
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		w.rest = nil
	}
	return n, nil
}

// Close is called by the client when it stops to watch.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.frames, w.released = true, nil, 0
	for _, timer := range w.timers {
		timer.Stop()
	}
	w.signal()
	return nil
}

// json returns the encoded object. Objects are encoded once; the server's lock is held.
func (o *object) json() []byte {
	if o.encoded == nil {
		o.encoded = encode(o.live)
	}
	return o.encoded
}

func encode(obj any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(obj); err != nil {
		panic(err) // objects come from JSON
	}
	return bytes.TrimRight(buffer.Bytes(), "\n")
}
