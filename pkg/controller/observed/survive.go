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

// A panic is one object's affair: it ends the pass, the event or the reduction that it is about, which is tried again, and the operator
// goes on with all other objects. A process that ended would come back to the same object, and serve no MCPServer in between.

// Survive calls a function, and returns its error, or one if it panics. The panic is logged, with its stack, and counted: package metrics
// adds a panic handler for that. The log names the object, if there is one.
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

// surviveCallback is survive for what informers call.
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
