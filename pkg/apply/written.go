// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Written remembers the resourceVersions of an applier's own writes, so that a controller can wait until its
// cache shows them. A controller that acts on a cache older than its own last write would take its own change
// for a foreign one (KEP-5647).
type Written struct {
	mu       sync.Mutex
	versions map[ObjectRef]string
}

func newWritten() *Written { return &Written{versions: map[ObjectRef]string{}} }

func (w *Written) record(ref ObjectRef, live metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[ref] = live.GetResourceVersion()
}

func (w *Written) forget(ref ObjectRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, ref)
}

// Seen tells whether a cache that has reached the resourceVersion shows our last write of the object. A
// version that cannot be compared counts as reached: waiting for it would never end.
func (w *Written) Seen(ref ObjectRef, cacheVersion string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	version, waiting := w.versions[ref]
	if !waiting {
		return true
	}
	if order, err := resourceversion.CompareResourceVersion(cacheVersion, version); err == nil && order < 0 {
		return false
	}
	delete(w.versions, ref)
	return true
}
