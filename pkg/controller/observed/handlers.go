// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import "k8s.io/client-go/tools/cache"

// OnEvery returns a handler that calls wake with the object of every event.
func OnEvery(wake func(obj any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, obj any) { wake(obj) },
		DeleteFunc: func(obj any) { wake(LastKnown(obj)) },
	}
}

// LastKnown returns the object of a deletion, as it was known last where the watch has missed its end.
func LastKnown(obj any) any {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return obj
}

// OnNews is onEvery, except for updates between states that same calls equal. Any other update wakes for the earlier state as well.
func OnNews[T any](same func(now, before T) bool, wake func(obj any)) cache.ResourceEventHandlerFuncs {
	handler := OnEvery(wake)
	handler.UpdateFunc = func(before, after any) {
		old, known := before.(T)
		if now, ok := after.(T); !known || !ok || !same(now, old) {
			wake(before)
			wake(after)
		}
	}
	return handler
}
