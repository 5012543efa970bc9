// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
)

// through returns what becomes of requests behind a fence.
func through(t *testing.T, writes *fence, method, path string) error {
	t.Helper()
	arrive := func(*http.Request) (*http.Response, error) { return &http.Response{}, nil }
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	_, err := writes.wrap(roundTrip(arrive)).RoundTrip(request) //nolint:bodyclose // It has none.
	return err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

const (
	somePod      = "/api/v1/namespaces/a/pods/b"
	someEviction = somePod + "/eviction"
	someEvents   = "/apis/events.k8s.io/v1/namespaces/a/events"
	someLease    = "/apis/coordination.k8s.io/v1/namespaces/a/leases/freehold"
)

func TestWithoutLeaderElectionNothingIsFenced(t *testing.T) {
	for method, path := range map[string]string{"PATCH": somePod, "DELETE": somePod, "POST": someEviction, "GET": somePod} {
		if err := through(t, &fence{}, method, path); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
	}
}

// A process may stand still between a request that renews the lease and its answer, and the elector takes the lease to begin with
// the answer. By then another replica may have it: nothing is written until the lease is renewed again.
func TestNothingIsWrittenAfterALateAnswerUntilTheLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, writes, o := kubefake.NewClientset(), &fence{}, leading()
		late := o.leaseDuration + o.retryPeriod
		var still atomic.Bool
		core.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if still.CompareAndSwap(true, false) {
				<-time.After(late)
			}
			return false, nil, nil // The lease is renewed.
		})
		ctx, stop := context.WithCancel(t.Context())
		health := leaderelection.NewLeaderHealthzAdaptor(time.Second)
		err := lead(ctx, o, core, health, writes, func(working context.Context) error {
			defer stop()
			<-time.After(time.Minute)
			still.Store(true)
			for still.Load() {
				<-time.After(o.retryPeriod / 10)
			}
			<-time.After(late + o.retryPeriod/4)
			if err := through(t, writes, "PATCH", somePod); !errors.Is(err, errFenced) {
				t.Errorf("after the late answer a write gets %v", err)
			}
			<-time.After(2 * o.retryPeriod)
			if err := through(t, writes, "PATCH", somePod); err != nil {
				t.Errorf("when the lease is renewed again, a write gets %v", err)
			}
			return working.Err()
		})
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// An elector that hangs does not end the work when the lease has run out. Then nothing is written any more; reading goes on,
// and the lease may be renewed.
func TestNothingIsWrittenWhenTheLeaseHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, writes, release := kubefake.NewClientset(), &fence{}, make(chan struct{})
		var hang atomic.Bool
		core.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if !hang.Load() {
				return false, nil, nil
			}
			<-release
			return true, nil, errors.New("no answer")
		})
		o := leading()
		checkWrites := func(when string, want error) {
			t.Helper()
			for path, methods := range map[string][]string{somePod: {"PATCH", "DELETE"}, someEviction: {"POST"}} {
				for _, method := range methods {
					if err := through(t, writes, method, path); !errors.Is(err, want) {
						t.Errorf("%s, %s %s gets %v, want %v", when, method, path, err, want)
					}
				}
			}
			for method, path := range map[string]string{"GET": somePod, "PUT": someLease, "POST": someEvents, "PATCH": someEvents + "/b"} {
				if err := through(t, writes, method, path); err != nil {
					t.Errorf("%s, %s %s gets %v", when, method, path, err)
				}
			}
		}
		ended := make(chan error, 1)
		go func() {
			health := leaderelection.NewLeaderHealthzAdaptor(time.Second)
			ended <- lead(t.Context(), o, core, health, writes, func(working context.Context) error {
				<-time.After(time.Minute)
				checkWrites("with the lease", nil)
				hang.Store(true)
				<-time.After(o.leaseDuration + o.retryPeriod)
				if err := working.Err(); err != nil {
					t.Errorf("the work was to end: %v", err)
				}
				checkWrites("when the lease has run out", errFenced)
				close(release)
				<-working.Done()
				return nil
			})
		}()
		if err := <-ended; !errors.Is(err, errLeaseLost) {
			t.Errorf("it ended with %v", err)
		}
	})
}
