// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// Revision is a resourceVersion. Those of all objects come from one sequence here, as one etcd has them all: what has a
// greater one was written later.
type Revision uint64

func revisionOf(t *testing.T, object metav1.Object) Revision {
	t.Helper()
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatalf("the resourceVersion of %s is no number: %v", object.GetName(), err)
	}
	return Revision(number)
}

// Version is an object as it was from a revision on.
type Version struct {
	*unstructured.Unstructured
	Revision Revision
	// Listed tells that the object was there, and like this, when the history began.
	Listed bool
	// Deleted tells that the object was gone then.
	Deleted bool
}

// History has every version of the objects of a kind in a namespace, from its start on. It is watched, so that no
// version is missing, however short it lasted.
type History struct {
	objects dynamic.ResourceInterface

	mu       sync.Mutex
	versions []Version
	err      error
}

// Record starts a history of the namespace. It ends with the test.
func (ns *Namespace) Record(t *testing.T, resource schema.GroupVersionResource) *History {
	t.Helper()
	client, err := dynamic.NewForConfig(ns.Config)
	if err != nil {
		t.Fatal(err)
	}
	h := &History{objects: client.Resource(resource).Namespace(ns.Name)}
	list, err := h.objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		h.versions = append(h.versions, Version{Unstructured: &list.Items[i], Revision: revisionOf(t, &list.Items[i]), Listed: true})
	}
	Follow(t, list.GetResourceVersion(), h.objects.Watch, h.add)
	return h
}

func (h *History) add(event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error || event.Type == watch.Bookmark {
		// What comes after an error has a gap before it.
		h.err = fmt.Errorf("the watch was interrupted: %s %+v", event.Type, event.Object)
		return
	}
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		h.err = err
		return
	}
	h.versions = append(h.versions, Version{Unstructured: object, Revision: Revision(number), Deleted: event.Type == watch.Deleted})
}

// Complete returns all versions up to now, in their order, once those that the API server has now are among them.
func (h *History) Complete(t *testing.T) []Version {
	t.Helper()
	list, err := h.objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var versions []Version
	Eventually(t, "the history is complete", func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err != nil {
			t.Fatal(h.err)
		}
		seen := map[string]bool{}
		for _, v := range h.versions {
			seen[string(v.GetUID())+"@"+v.GetResourceVersion()] = true
		}
		for i := range list.Items {
			if live := &list.Items[i]; !seen[string(live.GetUID())+"@"+live.GetResourceVersion()] {
				return fmt.Errorf("%s %s is not in it yet", live.GetKind(), live.GetName())
			}
		}
		versions = slices.Clone(h.versions)
		return nil
	})
	return versions
}

// Named returns the versions of the object with a name.
func Named(name string, versions []Version) []Version {
	var found []Version
	for _, v := range versions {
		if v.GetName() == name {
			found = append(found, v)
		}
	}
	return found
}
