// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"context"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// mostRefusals is how many events one look at the refusals of a StatefulSet's pods reads. Kubernetes counts equal ones in one event.
const mostRefusals = 100

// podRefusals returns a function that reads why the API server has last refused to create a pod of a StatefulSet, since a time, as the events
// of the StatefulSet's controller report; "" where there is no such event.
func podRefusals(core kubernetes.Interface) func(ctx context.Context, namespace string, set types.UID, since time.Time) (string, error) {
	return func(ctx context.Context, namespace string, set types.UID, since time.Time) (reason string, err error) {
		selector := fields.Set{"regarding.uid": string(set), "reason": v1beta1.ReasonFailedCreate, "reportingController": "statefulset-controller"}
		options := metav1.ListOptions{Limit: mostRefusals, FieldSelector: selector.String()}
		found, err := core.EventsV1().Events(namespace).List(ctx, options) //nolint:forbidigo // No informer has events.
		if err != nil {
			return "", err
		}
		for i := range found.Items {
			if at := lastSeen(&found.Items[i]); !at.Before(since) {
				since, reason = at, found.Items[i].Note
			}
		}
		// Before it, the event names the pod and the StatefulSet once more.
		if _, cause, ok := strings.Cut(reason, " failed error: "); ok {
			return cause, nil
		}
		return reason, nil
	}
}

// lastSeen returns when an event has last come. Clients of before events.k8s.io/v1, as the controllers of Kubernetes are, fill in other fields.
func lastSeen(event *eventsv1.Event) time.Time {
	at := []time.Time{event.EventTime.Time, event.DeprecatedLastTimestamp.Time}
	if event.Series != nil {
		at = append(at, event.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(at, time.Time.Compare)
}
