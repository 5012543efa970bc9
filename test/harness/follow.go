// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolswatch "k8s.io/client-go/tools/watch"
)

// watchFunc begins a watch, as the clients of all resources can.
type watchFunc func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// WatchWithContext implements cache.WatcherWithContext.
func (f watchFunc) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, options)
}

// Follow hands on each event after a resourceVersion, in their order and none left out, until the test ends. An API server
// ends the watch of a client that is too slow to read it, as one is on a busy machine: Follow goes on where that one was. What
// cannot go on is an event of the type Error, the last one. While the test ends, nothing is handed on.
func Follow(t *testing.T, since string, begin func(context.Context, metav1.ListOptions) (watch.Interface, error), take func(watch.Event)) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, since, watchFunc(begin))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			if ctx.Err() == nil {
				take(event)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		watcher.Stop()
		done.Wait()
	})
}
