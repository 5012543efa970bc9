// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
)

// forbidReads answers lists and watches in a namespace with 403 until allow is called, those of MCPServers excepted: without these the
// operator would have no reason to write anything.
func (s *apiServer) forbidReads(namespace string) (allow func()) {
	var allowed atomic.Bool
	s.arriving.set(func(r *apiserver.Request) error {
		if !allowed.Load() && r.Namespace == namespace && r.Kind.Kind != v1beta1.MCPServerKind && !r.Writes() {
			return forbidden(r.Kind.Resource)
		}
		return nil
	})
	return func() { allowed.Store(true) }
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no such right"))
}

// A namespace that the operator may not read does not keep it from working in the others. It writes nothing there until it has read
// the children that there may be, and works there as soon as it has.
func TestANamespaceThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elsewhere := newServer("web")
		elsewhere.Namespace, elsewhere.UID = "market", "elsewhere"
		s := newAPIServer(t, newServer("web"), elsewhere)
		allow := s.forbidReads("market")
		o := start(t, s, func(c *Config) { c.Namespaces = []string{"shop", "market"} })
		defer o.end()
		expect := func(why string, want map[string]bool) {
			t.Helper()
			for namespace, want := range want {
				if _, there := o.api.Get(o.kindOf(&appsv1.StatefulSet{}), namespace, "web"); there != want {
					t.Errorf("%s: namespace %s has a backend: %t, want %t", why, namespace, there, want)
				}
			}
		}
		<-time.After(20 * time.Minute)
		expect("reads are forbidden", map[string]bool{"shop": true, "market": false})
		for _, r := range o.requested() {
			if r.Namespace == "market" && r.Writes() {
				t.Errorf("%s although its children were not read", r)
			}
		}
		allow()
		<-time.After(2 * time.Minute)
		expect("reads are allowed", map[string]bool{"shop": true, "market": true})
	})
}

// What is reported of a group depends on the MCPServers of its namespace: nothing is, before these have been read.
func TestNothingIsReportedOfAGroupBeforeItsNamespaceIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member, group := inGroup(newServer("web"), "team"), newGroup("team")
		member.Namespace, group.Namespace = "market", "market"
		s := newAPIServer(t, newServer("web"), member, group)
		var allowed atomic.Bool
		s.arriving.set(func(r *apiserver.Request) error {
			if !allowed.Load() && r.Namespace == "market" && r.Kind.Kind == v1beta1.MCPServerKind && !r.Writes() {
				return forbidden(r.Kind.Resource)
			}
			return nil
		})
		o := start(t, s, func(c *Config) { c.Namespaces, c.Configs = []string{"shop", "market"}, configcontroller.ConfigsAuto })
		defer o.end()
		stored := func() v1beta1.MCPGroupStatus {
			obj, _ := o.api.Get(o.kindOf(group), "market", "team")
			return obj.(*v1beta1.MCPGroup).Status
		}
		<-time.After(20 * time.Minute)
		if got := stored(); got.Phase != "" {
			t.Errorf("the group has the status %+v although its members were not read", got)
		}
		allowed.Store(true)
		<-time.After(2 * time.Minute)
		if got := stored(); got.ServerCount != 1 {
			t.Errorf("the group has the status %+v, want one member", got)
		}
	})
}

// expectFailing compares the kinds that cannot be listed or watched. It returns how long the only one has failed.
func (o *operating) expectFailing(why string, want ...FailingWatch) (lasts time.Duration) {
	o.t.Helper()
	got := o.FailingWatches()
	for i := range got {
		lasts = got[i].Lasts
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(FailingWatch{}, "Lasts")); diff != "" {
		o.t.Errorf("%s: kinds that fail (-want +got):\n%s", why, diff)
	}
	return lasts
}

// Rights that are lost while the operator runs are noticed when its watches end. The time grows with each attempt that fails, and only
// then, since the next one may have succeeded.
func TestRightsLostAtRunTimeAreNoticed(t *testing.T) {
	for name, lost := range map[string][]string{"list and watch": {"list", "watch"}, "watch": {"watch"}} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				var allowed atomic.Bool
				o.arriving.set(func(r *apiserver.Request) error {
					if !allowed.Load() && r.Kind.Kind == "Service" && slices.Contains(lost, r.Verb) {
						return forbidden("services")
					}
					return nil
				})
				o.expectFailing("the watches are open")
				o.api.CutWatches()
				<-time.After(10 * time.Minute)
				lasts := o.expectFailing("reads are forbidden", FailingWatch{Kind: "Service"})
				if lasts < 7*time.Minute || lasts > 10*time.Minute {
					t.Errorf("after ten minutes it has failed for %v", lasts)
				}
				allowed.Store(true)
				for range 5 { // the longest wait of a reflector, and watchWorksAfter, and the time since the last attempt
					<-time.After(time.Minute)
					for _, failing := range o.FailingWatches() {
						if failing.Lasts > lasts+time.Minute {
							t.Errorf("the failure grows from %v to %v while nothing fails", lasts, failing.Lasts)
						}
					}
				}
				o.expectFailing("reads are allowed")
			})
		})
	}
}

// A kind that cannot be read at the start fails from the first attempt on, until the caches are filled.
func TestRightsMissingAtTheStartAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		allow := s.forbidReads("market")
		o := start(t, s, func(c *Config) { c.Namespaces = []string{"shop", "market"} })
		defer o.end()
		<-time.After(10 * time.Minute)
		var want []FailingWatch
		for _, kind := range observed.RequiredKinds() {
			if kind != v1beta1.MCPServerKind {
				want = append(want, FailingWatch{Kind: kind, Namespace: "market"})
			}
		}
		o.expectFailing("reads are forbidden", want...)
		for _, failing := range o.FailingWatches() {
			if failing.Lasts < 9*time.Minute {
				t.Errorf("after ten minutes %s has failed for %v", failing.Kind, failing.Lasts)
			}
		}
		allow()
		<-time.After(2*time.Minute + 3*time.Minute)
		o.expectFailing("reads are allowed")
	})
}

// An API server that cannot fill its watch cache answers 429 to every watch, of which client-go tells nobody.
func TestAKindThatIsNeverListedIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		var mended atomic.Bool
		s.arriving.set(func(r *apiserver.Request) error {
			if !mended.Load() && r.Kind.Kind == "Service" && !r.Writes() {
				return apierrors.NewTooManyRequests("storage is (re)initializing", 0)
			}
			return nil
		})
		o := start(t, s, nil)
		defer o.end()
		<-time.After(10 * time.Second)
		o.expectFailing("the first list may take its time")
		<-time.After(10 * time.Minute)
		if lasts := o.expectFailing("no list has come", FailingWatch{Kind: "Service"}); lasts < 9*time.Minute {
			t.Errorf("after ten minutes it has failed for %v", lasts)
		}
		mended.Store(true)
		<-time.After(2*time.Minute + 3*time.Minute)
		o.expectFailing("lists come")
	})
}

// A reflector that waits to try again does not look whether it is to end. The lease is held until Run returns, and the others' namespaces
// wait for the next leader.
func TestTheEndDoesNotWaitForANamespaceThatIsNeverListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		s.arriving.set(func(r *apiserver.Request) error {
			if r.Namespace == "market" && !r.Writes() {
				return apierrors.NewTooManyRequests("storage is (re)initializing", 0)
			}
			return nil
		})
		for wait := range 8 {
			o := start(t, s, func(c *Config) { c.Namespaces = []string{"shop", "market"} })
			<-time.After(10*time.Minute + time.Duration(wait)*7*time.Second)
			asked := time.Now()
			o.end()
			if took := time.Since(asked); took > 2*time.Second {
				t.Errorf("it took %v to end", took)
			}
		}
		<-time.After(2 * time.Minute) // The last reflector ends.
	})
}

// Watches end all the time, and an API server that restarts refuses a request or two.
func TestWatchesThatEndAreNoFailure(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		for range 20 {
			for _, w := range o.api.Watches() {
				w.Expire()
			}
			<-time.After(time.Minute)
			o.expectFailing("watches expire")
			o.api.CutWatches()
			<-time.After(time.Minute)
			o.expectFailing("watches end")
		}
		var refused atomic.Bool
		o.onReads("services", func() error {
			if refused.Swap(true) {
				return nil
			}
			return apierrors.NewInternalError(errors.New("not yet"))
		})
		o.api.CutWatches()
		<-time.After(time.Minute)
		if lasts := o.expectFailing("one request was refused", FailingWatch{Kind: "Service"}); lasts > 0 {
			t.Errorf("one refused request is a failure of %v", lasts)
		}
	})
}

// An object that is made and removed again while the watch of its kind is renewed leaves no event.
func TestAChildThatGoesWhileItsWatchIsRenewedIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		var away atomic.Bool
		s.onReads("roles", func() error {
			if away.Load() {
				return apierrors.NewServiceUnavailable("not now")
			}
			return nil
		})
		o := start(t, s, nil)
		defer o.end()
		o.add(newServer("web"))
		o.rest()
		roles := o.kindOf(&rbacv1.Role{})
		remove := func() {
			if err := o.api.Remove(roles, "shop", "web-proxy-runner"); err != nil {
				t.Fatal(err)
			}
		}
		o.before.set(func(w write) error {
			if w.kind == "Role" && away.CompareAndSwap(false, true) {
				for _, watch := range o.api.Watches() {
					if watch.Kind == roles {
						watch.Expire()
					}
				}
			}
			return nil
		})
		remove()
		synctest.Wait() // It is made again,
		remove()        // and goes before there is another watch.
		o.before.set(nil)
		away.Store(false)
		<-time.After(2 * time.Minute)
		if _, there := o.api.Get(roles, "shop", "web-proxy-runner"); !there {
			t.Error("the Role was not made again")
		}
	})
}
