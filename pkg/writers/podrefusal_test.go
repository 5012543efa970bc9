// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestTheLastRefusalOfAPodIsRead: what counts is when an event has come last, whichever of its fields says so.
func TestTheLastRefusalOfAPodIsRead(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	event := func(note string, change func(*eventsv1.Event)) eventsv1.Event {
		e := eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: note, Namespace: "shop"}, Reason: "FailedCreate", Note: note, Regarding: corev1.ObjectReference{UID: "set"}}
		change(&e)
		return e
	}
	old := event("old", func(e *eventsv1.Event) { e.DeprecatedLastTimestamp = metav1.NewTime(noon.Add(-time.Hour)) })
	counted := event(`create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`, func(e *eventsv1.Event) {
		e.EventTime = metav1.NewMicroTime(noon.Add(-time.Hour))
		e.DeprecatedLastTimestamp = metav1.NewTime(noon.Add(2 * time.Second))
	})
	series := event("series", func(e *eventsv1.Event) {
		e.EventTime = metav1.NewMicroTime(noon.Add(-time.Hour))
		e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(noon.Add(3 * time.Second))}
	})
	for name, of := range map[string]struct {
		events []eventsv1.Event
		want   string
	}{
		"none":                        {},
		"before that time":            {[]eventsv1.Event{old}, ""},
		"the cause alone":             {[]eventsv1.Event{counted, old}, `pods "web-0" is forbidden: exceeded quota`},
		"the last one, of any client": {[]eventsv1.Event{series, counted, old}, "series"},
	} {
		client := fake.NewClientset()
		client.PrependReactor("list", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			got := action.(clienttesting.ListAction).GetListRestrictions().Fields.String()
			if want := "reason=FailedCreate,regarding.uid=set,reportingController=statefulset-controller"; got != want {
				t.Errorf("%s: selected by %s, want %s", name, got, want)
			}
			return true, &eventsv1.EventList{Items: of.events}, nil
		})
		got, err := podRefusals(client)(t.Context(), "shop", "set", noon)
		if err != nil || got != of.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, of.want)
		}
	}
}
