// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

const (
	// eventsTimeout is how long the end of the process waits for the last events to be sent. The lease has been released by then.
	eventsTimeout = 3 * time.Second
	// eventsPause is how long no event is being sent before the end takes it that none will. client-go does not report that an
	// event is on its way from the recorder to the sink, which takes it a few switches between goroutines and no request.
	eventsPause = 100 * time.Millisecond
)

// startRecorder returns a recorder of events, and a function that ends it once nothing records any more. The end of the context
// does not end it: passes that have begun go on, and the status that they write keeps later ones from recording the same.
func startRecorder(ctx context.Context, to events.EventSink) (events.EventRecorder, func()) {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	sink := &countingSink{EventSink: to}
	broadcaster := events.NewBroadcaster(sink)
	if err := broadcaster.StartRecordingToSinkWithContext(recording); err != nil {
		klog.FromContext(ctx).Error(err, "Events are not recorded")
	}
	return broadcaster.NewRecorder(scheme, component), func() {
		defer stop()
		sink.await(recording)
		broadcaster.Shutdown()
	}
}

// countingSink knows whether events are being sent.
type countingSink struct {
	events.EventSink

	mu       sync.Mutex
	underway int
	// last is when the last request ended.
	last time.Time
}

// Create implements events.EventSink.
func (s *countingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	defer s.begin()()
	return toRepeat(s.EventSink.Create(ctx, event))
}

// Update implements events.EventSink.
func (s *countingSink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	defer s.begin()()
	return toRepeat(s.EventSink.Update(ctx, event))
}

// Patch implements events.EventSink.
func (s *countingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	defer s.begin()()
	return toRepeat(s.EventSink.Patch(ctx, event, data))
}

// toRepeat has client-go send an event again, ten seconds later and a dozen times at most, that an API server in trouble did not take:
// client-go drops an event for any answer that is a Status.
func toRepeat(event *eventsv1.Event, err error) (*eventsv1.Event, error) {
	if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
		err = fmt.Errorf("the API server takes no events for now: %w", err)
	}
	return event, err
}

// begin counts a request, and returns the function that notes its end.
func (s *countingSink) begin() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underway--
		s.last = time.Now()
	}
}

// await returns when no event has been on its way for eventsPause, after eventsTimeout at the latest. It does not wait for
// events that failed and would be sent again.
func (s *countingSink) await(ctx context.Context) {
	began := time.Now()
	_ = wait.PollUntilContextTimeout(ctx, eventsPause/10, eventsTimeout, false, func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.underway == 0 && time.Since(began) >= eventsPause && time.Since(s.last) >= eventsPause, nil
	})
}
