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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
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

// silentAccounts is a client whose apply of a ServiceAccount ends only with its context. Fake clients heed none.
type silentAccounts struct {
	kubernetes.Interface
	begun chan time.Time
	ended chan time.Time
}

// IsWatchListSemanticsUnSupported tells the informers what the fake client would tell them.
func (silentAccounts) IsWatchListSemanticsUnSupported() bool { return true }

func (c silentAccounts) CoreV1() corev1client.CoreV1Interface {
	return silentCore{c.Interface.CoreV1(), c}
}

type silentCore struct {
	corev1client.CoreV1Interface
	accounts silentAccounts
}

func (c silentCore) ServiceAccounts(namespace string) corev1client.ServiceAccountInterface {
	return silentAccount{c.CoreV1Interface.ServiceAccounts(namespace), c.accounts}
}

type silentAccount struct {
	corev1client.ServiceAccountInterface
	accounts silentAccounts
}

func (c silentAccount) Apply(
	ctx context.Context, _ *corev1ac.ServiceAccountApplyConfiguration, _ metav1.ApplyOptions,
) (*corev1.ServiceAccount, error) {
	c.accounts.begun <- time.Now()
	<-ctx.Done()
	c.accounts.ended <- time.Now()
	return nil, ctx.Err()
}

// A request that has no answer when the controller is asked to end is waited for, but not for ever.
func TestShutdownBreaksOffWhatHasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		client := silentAccounts{Interface: s.core, begun: make(chan time.Time, 10), ended: make(chan time.Time, 10)}
		o := start(t, s, func(c *Config) { c.Core = client })
		<-client.begun
		<-time.After(time.Minute)
		asked := time.Now()
		o.end()
		if got := (<-client.ended).Sub(asked); got != drainTimeout {
			t.Errorf("the request was broken off after %s, want %s", got, drainTimeout)
		}
		if got := time.Since(asked); got != drainTimeout {
			t.Errorf("it took %s to end, want %s", got, drainTimeout)
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
		asked := time.Now()
		o.end()
		if took := time.Since(asked); took > time.Second {
			t.Errorf("it took %s to end", took)
		}
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
