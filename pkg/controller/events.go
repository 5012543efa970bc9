// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// rememberedEvents is how many events are remembered. The recorder itself remembers an event for six minutes.
const rememberedEvents = 4096

// maxNote is how long the API server lets the note of an event be, in bytes. It refuses a longer one, and the recorder
// drops the event then.
const maxNote = 1024

// eventRecorder records an event about an MCPServer that is repeated as one event, a series, and another event as another one.
//
// To the recorders of client-go two events are the same when they are alike but for their notes, and regard the same
// version of an object. The status is written before the event, so an event that is repeated comes with another version, and would be a
// new event each time. Without a version, an event with the same reason and another note, such as a conflict about another field, would be
// counted as the first one and not be recorded. So an event regards the version at which it was recorded first.
type eventRecorder struct {
	events.EventRecorder
	versions *lru.Cache
}

func newEventRecorder(to events.EventRecorder) eventRecorder {
	return eventRecorder{to, lru.New(rememberedEvents)}
}

// Eventf implements events.EventRecorder. An object without a kind is taken for an MCPServer.
func (r eventRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	server, err := meta.Accessor(regarding)
	if err != nil {
		return // not an object: there is nothing to report about
	}
	text := printable.Bound(printable.Text(fmt.Sprintf(note, args...)), maxNote) // The whole of it is in a condition.
	event := strings.Join([]string{string(server.GetUID()), eventType, reason, action, text}, "\n")
	version, known := r.versions.Get(event)
	if !known {
		version = server.GetResourceVersion()
		r.versions.Add(event, version)
	}
	kind := regarding.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kind = v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind)
	}
	r.EventRecorder.Eventf(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: server.GetNamespace(), Name: server.GetName(), UID: server.GetUID(), ResourceVersion: version.(string),
		},
	}, related, eventType, reason, action, "%s", text)
}
