// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A pass that has begun when the controller is asked to end is finished, and no other is begun.
func TestShutdownFinishesWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers []runtime.Object
		for i := range 5 {
			servers = append(servers, newServer(fmt.Sprint("web-", i)))
		}
		s := newAPIServer(t, servers...)
		var o *operating
		begun := make(chan string, len(servers))
		s.before = func(w write) error {
			if w.manager == "freehold-finalizer" {
				begun <- w.name
				<-time.After(5 * time.Second) // an answer that takes its time
			}
			return nil
		}
		o = start(t, s, func(c *Config) { c.Workers = 1 })
		first := <-begun
		o.end()

		want := slices.Clone(beforeTheBackend)
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "web", first)
		}
		o.expect(want, "the pass that had begun")
		if left := len(begun); left != 0 {
			t.Errorf("%d more passes were begun", left)
		}
	})
}

// An API server that does not answer keeps the controller for no longer than a while.
func TestShutdownDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		begun := make(chan struct{}, 100)
		s.before = func(write) error {
			begun <- struct{}{}
			<-time.After(drainTimeout + time.Minute)
			return context.DeadlineExceeded
		}
		o := start(t, s, nil)
		<-begun
		asked := time.Now()
		o.end()
		// The fake clients do not heed the end of a context, so this one request is waited for.
		if took := time.Since(asked); took > drainTimeout+2*time.Minute {
			t.Errorf("it took %s to end", took)
		}
		if left := len(begun); left > 1 {
			t.Errorf("%d more requests were sent", left)
		}
	})
}

func TestShutdownBeforeTheCachesAreFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		s.core.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, fmt.Errorf("not allowed")
		})
		o := start(t, s, nil)
		<-time.After(time.Minute)
		o.expect(nil, "caches that are not filled")
		o.end()
	})
}

func TestShutdownBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		c, err := New(Config{Core: s.core, Servers: s.servers})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if writes := s.took(); len(writes) != 0 {
			t.Errorf("writes %v", writes)
		}
	})
}
