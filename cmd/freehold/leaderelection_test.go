// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
)

func leading() *options {
	o := defaults()
	o.leaseName, o.leaseNamespace = defaultLease, "home"
	return &o
}

// compete starts to lead in the background.
func compete(ctx context.Context, core kubernetes.Interface, work func(context.Context) error) <-chan error {
	return competeAs(ctx, leading(), core, work)
}

func competeAs(ctx context.Context, o *options, core kubernetes.Interface, work func(context.Context) error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- lead(ctx, o, core, leaderelection.NewLeaderHealthzAdaptor(time.Second), &fence{}, work)
	}()
	return ended
}

func lease(t *testing.T, core kubernetes.Interface) *coordinationv1.Lease {
	t.Helper()
	lease, err := core.CoordinationV1().Leases("home").Get(t.Context(), "freehold", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func holder(t *testing.T, core kubernetes.Interface) string {
	t.Helper()
	if who := lease(t, core).Spec.HolderIdentity; who != nil {
		return *who
	}
	return ""
}

// The lease is released after the work has ended, and not before: else two would work at a time.
func TestLeaseIsReleasedAfterTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		ctx, stop := context.WithCancel(t.Context())
		ended := compete(ctx, core, func(working context.Context) error {
			<-working.Done()
			<-time.After(5 * time.Second) // what has begun is finished
			if holder(t, core) == "" {
				t.Error("the lease was released while the work went on")
			}
			return nil
		})
		<-time.After(time.Minute)
		synctest.Wait()
		if holder(t, core) == "" {
			t.Fatal("nobody holds the lease")
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		if who := holder(t, core); who != "" {
			t.Errorf("%s still holds the lease", who)
		}
	})
}

func TestOneWorksAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		var working, most, turns atomic.Int32
		work := func(ctx context.Context) error {
			turns.Add(1)
			if n := working.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-ctx.Done()
			<-time.After(3 * time.Second)
			working.Add(-1)
			return nil
		}
		firstContext, stopFirst := context.WithCancel(t.Context())
		first := compete(firstContext, core, work)
		<-time.After(time.Minute)
		secondContext, stopSecond := context.WithCancel(t.Context())
		second := compete(secondContext, core, work)
		<-time.After(time.Minute)
		if turns.Load() != 1 {
			t.Errorf("%d work, want 1", turns.Load())
		}
		stopFirst()
		if err := <-first; err != nil {
			t.Errorf("the first ended with %v", err)
		}
		<-time.After(time.Minute)
		if turns.Load() != 2 || working.Load() != 1 {
			t.Errorf("%d have worked and %d do, want the second to have taken over", turns.Load(), working.Load())
		}
		stopSecond()
		if err := <-second; err != nil {
			t.Errorf("the second ended with %v", err)
		}
		if most.Load() != 1 {
			t.Errorf("%d worked at a time", most.Load())
		}
	})
}

func TestWorkThatFailsEndsTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		broken := errors.New("broken")
		if err := <-compete(t.Context(), core, func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("ended with %v", err)
		}
		if who := holder(t, core); who != "" {
			t.Errorf("%s still holds the lease", who)
		}
	})
}

// A lease that cannot be renewed ends the work, and the process with it.
func TestLostLeaseEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		var cut atomic.Bool
		core.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return cut.Load(), nil, errors.New("no answer")
		})
		stopped := make(chan struct{})
		ended := compete(t.Context(), core, func(working context.Context) error {
			<-working.Done()
			close(stopped)
			return nil
		})
		<-time.After(time.Minute)
		cut.Store(true)
		if err := <-ended; !errors.Is(err, errLeaseLost) {
			t.Errorf("ended with %v, want %v", err, errLeaseLost)
		}
		<-stopped
	})
}

// outage is a time in which a client's updates of leases fail, and its reads hang.
type outage struct {
	begun atomic.Bool
	ended chan struct{}
}

// outageCore, outageCoordination and outageLeases are the layers of a client with an outage.
type outageCore struct {
	kubernetes.Interface

	*outage
}

func (c outageCore) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return outageCoordination{c.Interface.CoordinationV1(), c.outage}
}

type outageCoordination struct {
	coordinationclient.CoordinationV1Interface

	*outage
}

func (c outageCoordination) Leases(namespace string) coordinationclient.LeaseInterface {
	return outageLeases{c.CoordinationV1Interface.Leases(namespace), c.outage}
}

type outageLeases struct {
	coordinationclient.LeaseInterface

	*outage
}

func (c outageLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if c.begun.Load() {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.LeaseInterface.Get(ctx, name, o)
}

func (c outageLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if c.begun.Load() {
		select {
		case <-c.ended:
		default:
			return nil, errors.New("no answer")
		}
	}
	return c.LeaseInterface.Update(ctx, lease, o)
}

// A leader without a connection loses the lease. When the connection comes back while it releases the lease, another replica may
// have acquired it: it stays that replica's, else a third could work beside it.
func TestDeposedLeaderLeavesTheLeaseToItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		cut := &outage{ended: make(chan struct{})}
		first := compete(t.Context(), outageCore{core, cut}, func(working context.Context) error { <-working.Done(); return nil })
		<-time.After(time.Minute)
		before := holder(t, core)

		acquired := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		// The first tries to release the lease until 22 s after it last renewed it. The second looks at random times, and must have
		// acquired the lease by then: with so short a period it has after 18 s.
		soon := leading()
		soon.retryPeriod = 500 * time.Millisecond
		second := competeAs(ctx, soon, core, func(working context.Context) error {
			close(acquired)
			<-working.Done()
			return nil
		})
		<-time.After(time.Minute)
		cut.begun.Store(true)
		<-acquired
		successor := holder(t, core)
		if successor == before || successor == "" {
			t.Fatalf("%q holds the lease, want the second", successor)
		}
		select {
		case err := <-first:
			t.Fatalf("the first ended with %v before it could release the lease", err)
		default:
		}
		close(cut.ended)
		if err := <-first; !errors.Is(err, errLeaseLost) {
			t.Errorf("the first ended with %v, want %v", err, errLeaseLost)
		}
		if who := holder(t, core); who != successor {
			t.Errorf("%q holds the lease, want %q", who, successor)
		}
		stop()
		if err := <-second; err != nil {
			t.Errorf("the second ended with %v", err)
		}
		if who := holder(t, core); who != "" {
			t.Errorf("%s still holds the lease", who)
		}
	})
}

func TestWhoWaitsForTheLeaseCanEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubefake.NewClientset()
		ctx, stop := context.WithCancel(t.Context())
		first := compete(ctx, core, func(working context.Context) error { <-working.Done(); return nil })
		<-time.After(time.Minute)

		waiting, stopWaiting := context.WithCancel(t.Context())
		second := compete(waiting, core, func(context.Context) error {
			t.Error("works without the lease")
			return nil
		})
		<-time.After(time.Minute)
		stopWaiting()
		if err := <-second; err != nil {
			t.Errorf("ended with %v", err)
		}
		stop()
		if err := <-first; err != nil {
			t.Errorf("the other ended with %v", err)
		}
	})
}

func TestTimesOfAnElectionThatDoNotFitAreRefused(t *testing.T) {
	o := leading()
	o.renewDeadline = o.leaseDuration
	err := lead(t.Context(), o, kubefake.NewClientset(), leaderelection.NewLeaderHealthzAdaptor(time.Second), &fence{}, nil)
	if err == nil {
		t.Error("a lease that ends before it is renewed was accepted")
	}
}
