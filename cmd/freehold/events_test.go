// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller"
)

// A pass that is under way when the program is asked to end is finished, and what it reports as an event arrives: the status
// says it by then, so no later pass would report it.
func TestEventsOfTheLastPassAreSent(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	cluster := &emptyCluster{watched: map[string]bool{}, agents: map[string]bool{}, server: map[string]any{
		"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "4", "generation": 1},
		// It cannot be rendered, so that only its finalizer and its status are written.
		"spec": map[string]any{"image": "example.com/web", "transport": "nonsense"},
	}}
	cluster.apply = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/status") {
			arrived <- struct{}{}
			<-release
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("%s %s cannot be read: %v", r.Method, r.URL, err)
		}
		written := maps.Clone(cluster.server)
		written["status"] = body["status"]
		_ = json.NewEncoder(w).Encode(written)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := cluster.operate(ctx, t, "--health-probe-bind-address=0", "--metrics-bind-address=0")
	select {
	case <-arrived:
	case err := <-ended:
		t.Fatalf("it ended early: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no status is written")
	}
	stop()
	close(release)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if want := "POST /apis/events.k8s.io/v1/namespaces/shop/events"; !slices.Contains(cluster.others, want) {
		t.Errorf("no event was sent, but %v", cluster.others)
	}
}

// sink is an events.EventSink that takes its time. A request whose context ends is broken off.
type sink struct {
	events.EventSink

	takes time.Duration
	fails error
	sent  atomic.Int32
}

func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fails == nil {
		s.sent.Add(1)
	}
	return event, s.fails
}

// The end waits for events on their way, but not for ever, and not for the next attempt to send one that was refused.
func TestEndWaitsForEvents(t *testing.T) {
	for name, test := range map[string]struct {
		events int
		sink   *sink
		sent   int32
		least  time.Duration
		most   time.Duration
	}{
		"none":              {sink: &sink{}, most: 2 * eventsPause},
		"at once":           {events: 1, sink: &sink{}, sent: 1, most: 2 * eventsPause},
		"many":              {events: 500, sink: &sink{}, sent: 500, most: 2 * eventsPause},
		"slowly":            {events: 3, sink: &sink{takes: eventsTimeout / 2}, sent: 3, least: eventsTimeout / 2, most: eventsTimeout/2 + 2*eventsPause},
		"without an answer": {events: 3, sink: &sink{takes: time.Hour}, least: eventsTimeout, most: eventsTimeout},
		"refused":           {events: 1, sink: &sink{fails: errors.New("no route")}, most: 2 * eventsPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				recorder, end := startRecorder(ctx, test.sink)
				cancel()
				synctest.Wait()
				for i := range test.events {
					server := &v1beta1.MCPServer{}
					server.Namespace, server.Name = "shop", fmt.Sprint("web-", i)
					recorder.Eventf(server, nil, corev1.EventTypeNormal, "Reason", "Action", "%s", "note")
				}
				began := time.Now()
				end()
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("the end took %s, want %s to %s", took, test.least, test.most)
				}
				if sent := test.sink.sent.Load(); sent != test.sent {
					t.Errorf("%d events were sent, want %d", sent, test.sent)
				}
			})
		})
	}
}

// overloaded is an events.EventSink that refuses the first event, as an API server in trouble does.
type overloaded struct {
	sink

	refusal error
	refused atomic.Bool
}

func (s *overloaded) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if s.refused.CompareAndSwap(false, true) {
		return nil, s.refusal
	}
	return s.sink.Create(ctx, event)
}

// An event that an API server in trouble did not take is sent again: client-go would drop it.
func TestEventsAreSentAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"429": apierrors.NewTooManyRequests("later", 1), "503": apierrors.NewServiceUnavailable("later"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &overloaded{refusal: refusal}
				recorder, end := startRecorder(t.Context(), to)
				synctest.Wait()
				server := &v1beta1.MCPServer{}
				server.Namespace, server.Name = "shop", "web"
				recorder.Eventf(server, nil, corev1.EventTypeNormal, "Reason", "Action", "%s", "note")
				<-time.After(time.Minute)
				if sent := to.sent.Load(); sent != 1 {
					t.Errorf("%d events were sent, want 1", sent)
				}
				end()
			})
		})
	}
}

// What the end of the process waits for, one after the other, takes less time than Kubernetes gives its pod.
func TestEndFitsTheGracePeriod(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/operator/deployment/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(manifest, &deployment); err != nil {
		t.Fatal(err)
	}
	grace := deployment.Spec.Template.Spec.TerminationGracePeriodSeconds
	if grace == nil {
		t.Fatal("the manifest names no grace period")
	}
	most := controller.EndTimeout + eventsTimeout + flushTimeout
	if given := time.Duration(*grace) * time.Second; most >= given {
		t.Errorf("the end may take %s, and the pod gets %s", most, given)
	}
}
