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

// rememberedNews is how many events are remembered. The recorder itself remembers an event for six minutes.
const rememberedNews = 4096

// maxNote is how long the API server lets the note of an event be, in bytes. It refuses a longer one, and the recorder
// drops the event then.
const maxNote = 1024

// newsRecorder records the same news about an MCPServer as one event, a series, and other news as another one.
//
// To the recorders of client-go two events are the same when they are alike but for their notes, and regard the same
// version of an object. But the status is written before the event, so the next news always come with another version: the
// same ones would be a new event each time. And without a version, other news for the same reason, such as a conflict
// about another field, would be counted as the first ones and not be recorded. So news always regard the version at which
// they were recorded first.
type newsRecorder struct {
	events.EventRecorder
	versions *lru.Cache
}

func newNewsRecorder(to events.EventRecorder) newsRecorder {
	return newsRecorder{to, lru.New(rememberedNews)}
}

// Eventf implements events.EventRecorder. An object without a kind is taken for an MCPServer.
func (r newsRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	server, err := meta.Accessor(regarding)
	if err != nil {
		return // not an object: there is nothing to report about
	}
	text := printable.Text(fmt.Sprintf(note, args...))
	if len(text) > maxNote {
		// The whole of it is in a condition.
		const more = "..."
		text = strings.ToValidUTF8(text[:maxNote-len(more)], "") + more
	}
	news := strings.Join([]string{string(server.GetUID()), eventType, reason, action, text}, "\n")
	version, known := r.versions.Get(news)
	if !known {
		version = server.GetResourceVersion()
		r.versions.Add(news, version)
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
