// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

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

// OnChange is OnEvery for objects of one type, except for updates between states that same calls equal. Any other update wakes for the
// earlier state as well.
func OnChange[T any](same func(now, before T) bool, wake func(object T)) cache.ResourceEventHandlerFuncs {
	handler := OnEvery(func(obj any) {
		if object, ok := obj.(T); ok {
			wake(object)
		}
	})
	handler.UpdateFunc = func(before, after any) {
		old, known := before.(T)
		if now, ok := after.(T); !known || !ok || !same(now, old) {
			handler.AddFunc(before)
			handler.AddFunc(after)
		}
	}
	return handler
}

// Survive calls a function, and returns its error, or one if it panics. So a panic ends one pass, event or reduction, which is tried
// again, and not the process: that would come back to the same object, and serve no MCPServer in between. The panic is logged, with its
// stack, and counted by a handler of package metrics. The log names the object, if there is one.
func Survive(ctx context.Context, object any, call func() error) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if found, unknown := meta.Accessor(object); unknown == nil {
			ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx),
				"type", fmt.Sprintf("%T", object), "object", klog.KRef(found.GetNamespace(), found.GetName())))
		}
		for _, handle := range utilruntime.PanicHandlers {
			handle(ctx, cause)
		}
		err = fmt.Errorf("it panicked: %v", cause)
	}()
	return call()
}

// surviveCallback is Survive for what informers call.
func surviveCallback(object any, call func() error) error {
	return Survive(context.Background(), object, call) //nolint:forbidigo // Informers pass none.
}

// Surviving returns a transform that keeps an object whole if it panics: an object that a cache does not hold counts as absent. Passes
// reduce it again when they need it. If that panics too, the pass does, and is tried again.
func Surviving(transform cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (kept any, err error) {
		kept = obj
		_ = surviveCallback(obj, func() error { kept, err = transform(obj); return nil })
		return kept, err
	}
}

// minHandleAgain and maxHandleAgain bound the wait before an event is handled again whose handler has panicked.
const (
	minHandleAgain = 200 * time.Millisecond
	maxHandleAgain = 10 * time.Minute
)

// Persistent returns a handler that handles an event again if that panics. No other event waits for it.
func Persistent(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { persist(obj, minHandleAgain, func() { handler.OnAdd(obj, initial) }) },
		UpdateFunc: func(before, obj any) { persist(obj, minHandleAgain, func() { handler.OnUpdate(before, obj) }) },
		DeleteFunc: func(obj any) { persist(LastKnown(obj), minHandleAgain, func() { handler.OnDelete(obj) }) },
	}
}

// persist calls a function until it does not panic, after waits that grow. It gives up after the longest: later events of the object, and
// those of a resync, are handled all the same, and an object that changes all the time must not leave more and more behind.
func persist(object any, wait time.Duration, handle func()) {
	if surviveCallback(object, func() error { handle(); return nil }) != nil && wait <= maxHandleAgain {
		time.AfterFunc(wait, func() { persist(object, 2*wait, handle) })
	}
}
