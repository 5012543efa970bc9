// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// WriteTracker records the resourceVersions of an applier's own writes, so that a controller can wait until its cache
// shows them. A controller that acts on a cache older than its own last write would mistake its own change for a foreign
// one (KEP-5647).
type WriteTracker struct {
	mu       sync.Mutex
	versions map[ObjectRef]string
}

func newWriteTracker() *WriteTracker { return &WriteTracker{versions: map[ObjectRef]string{}} }

func (w *WriteTracker) record(ref ObjectRef, live metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[ref] = live.GetResourceVersion()
}

func (w *WriteTracker) forget(ref ObjectRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, ref)
}

// Seen reports whether a cache that has reached the resourceVersion shows the applier's last write of the object. A
// version that cannot be compared counts as reached: waiting for it would never end.
func (w *WriteTracker) Seen(ref ObjectRef, cacheVersion string) bool {
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

// Store has the objects of a cache, such as a cache.Store of client-go.
type Store interface {
	// GetByKey returns the object of a key, NAMESPACE/NAME or NAME, if there is one.
	GetByKey(key string) (item any, exists bool, err error)
	// LastStoreSyncResourceVersion returns the version that the store has reached. The version of its informer may be
	// ahead of it.
	LastStoreSyncResourceVersion() string
}

// GetCurrent returns an object from the store of an informer, for Request.Live, or nil if the store does not have it.
// Current is false while the store does not show this applier's own last write of the object: end the pass then, because
// the event of that write starts the next. The informer must not modify the objects; they need their managedFields.
func (a *Applier) GetCurrent(ref ObjectRef, store Store) (live metav1.Object, current bool, err error) {
	// The version before the object: the store may become newer in between, but never older.
	if !a.written.Seen(ref, store.LastStoreSyncResourceVersion()) {
		return nil, false, nil
	}
	key := ref.Name
	if ref.Namespace != "" {
		key = ref.NamespacedName.String()
	}
	item, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return nil, err == nil, err
	}
	if live, err = meta.Accessor(item); err != nil {
		return nil, false, fmt.Errorf("the store has no object at %s: %w", key, err)
	}
	return live, true, nil
}
