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

	"github.com/freehold-dev/freehold/internal/apiserver"
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
		s.before.set(func(w write) error {
			if w.manager == "freehold-finalizer" {
				begun <- w.name
				<-time.After(5 * time.Second) // an answer that takes its time
			}
			return nil
		})
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

// A request that has no answer when the controller is asked to end is waited for, but not for ever.
func TestShutdownBreaksOffWhatHasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		begun, ended := make(chan struct{}, 10), make(chan time.Time, 10)
		s.arriving.set(func(r *apiserver.Request) error {
			if r.Verb != "apply" || r.Kind.Resource != "serviceaccounts" {
				return nil
			}
			begun <- struct{}{}
			<-r.Context().Done()
			ended <- time.Now()
			return r.Context().Err()
		})
		o := start(t, s, nil)
		<-begun
		<-time.After(time.Minute)
		asked := time.Now()
		o.end()
		if got := (<-ended).Sub(asked); got != DrainTimeout {
			t.Errorf("the request was broken off after %s, want %s", got, DrainTimeout)
		}
		if got := time.Since(asked); got != DrainTimeout {
			t.Errorf("it took %s to end, want %s", got, DrainTimeout)
		}
	})
}

func TestShutdownDoesNotWaitForTheCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		s.onReads("configmaps", func() error { return fmt.Errorf("not allowed") })
		o := start(t, s, nil)
		<-time.After(time.Minute)
		o.expect(nil, "caches that are not filled")
		asked := time.Now()
		o.end()
		if took := time.Since(asked); took > time.Second {
			t.Errorf("it took %s to end", took)
		}
	})
}

func TestShutdownBeforeTheStartLeavesNothingToDo(t *testing.T) {
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
