// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// panics are those that were handled during a test, by their times.
type panics struct {
	mu sync.Mutex
	at []time.Time
}

// countPanics counts them as package metrics does.
func countPanics(t *testing.T) *panics {
	t.Helper()
	counted := &panics{}
	before := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = append(slices.Clone(before), func(context.Context, any) {
		counted.mu.Lock()
		defer counted.mu.Unlock()
		counted.at = append(counted.at, time.Now())
	})
	t.Cleanup(func() { utilruntime.PanicHandlers = before })
	return counted
}

// take returns the times since it was asked last.
func (p *panics) take() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.at
	p.at = nil
	return at
}

// expectGrowingWaits fails the test unless there were some, after waits each of which is longer than the one before it, up to the longest.
// Events at the beginning may cause several at once.
func (p *panics) expectGrowingWaits(t *testing.T) {
	t.Helper()
	at, before := slices.CompactFunc(p.take(), time.Time.Equal), time.Duration(0)
	if len(at) < 5 {
		t.Fatalf("%d panics were handled", len(at))
	}
	for i := range at[1:] {
		wait := at[i+1].Sub(at[i])
		if wait <= before && wait < maxBackoff {
			t.Errorf("after a wait of %v one of %v", before, wait)
		}
		before = wait
	}
}

// observer is an apply.Observer.
type observer func(apply.Outcome)

func (o observer) Observe(out apply.Outcome) { o(out) }

// panicking makes a Config whose observer panics for the writes to one object, until it is lifted.
func panicking(object apply.ObjectRef, lifted *atomic.Bool) func(*Config) {
	return func(c *Config) {
		c.Configs = configcontroller.ConfigsAuto
		c.Observer = observer(func(out apply.Outcome) {
			if out.Object == object && !lifted.Load() {
				panic("no such luck")
			}
		})
	}
}

// A pass that panics is repeated after waits that grow, and those over other MCPServers go on.
func TestPassThatPanicsIsOneObjectsAffair(t *testing.T) {
	counted := countPanics(t)
	var lifted atomic.Bool
	bad := inventory.Backend.Ref("shop", "bad")
	operate(t, []apiruntime.Object{newServer("bad"), newServer("web")}, panicking(bad, &lifted), func(t *testing.T, o *operating) {
		o.becomeReady("web")
		<-time.After(20 * time.Minute)
		counted.expectGrowingWaits(t)
		if exists[*appsv1.Deployment](o.apiServer, "bad") {
			t.Error("the pass has gone on where it panicked")
		}
		lifted.Store(true)
		<-time.After(maxBackoff)
		o.becomeReady("bad")
	})
}

// A pass that panics keeps no other MCPServer from its turn.
func TestPassThatPanicsLeavesItsTurn(t *testing.T) {
	var lifted atomic.Bool
	operate(t, nil, panicking(inventory.Backend.Ref("shop", "bad"), &lifted), func(t *testing.T, o *operating) {
		key := cache.NewObjectName("shop", "bad")
		for _, limiter := range []*turns.Limiter{o.takeovers, o.configRollouts} {
			if _, acquired := limiter.Acquire(key, turns.Queue{Namespace: key.Namespace}); !acquired {
				t.Fatal("there is no turn")
			}
		}
		o.add(newServer("bad"))
		o.rest()
		if o.takeovers.Holds(key) || o.configRollouts.Holds(key) {
			t.Error("it has its turn still")
		}
	})
}

// A pass over what MCPServers refer to that panics is repeated after waits that grow, and those over other such objects go on.
func TestConfigPassThatPanicsIsOneObjectsAffair(t *testing.T) {
	counted := countPanics(t)
	var lifted atomic.Bool
	bad := newIDP()
	bad.Name, bad.UID = "bad", "uid-of-bad"
	ref := apply.NewObjectRef(v1beta1.Kind(v1beta1.MCPOIDCConfigKind), "shop", "bad")
	operate(t, []apiruntime.Object{bad, newIDP()}, panicking(ref, &lifted), func(t *testing.T, o *operating) {
		conditions := func(name string) []metav1.Condition {
			found, _ := get[*v1beta1.MCPOIDCConfig](o.apiServer, name)
			return found.Status.Conditions
		}
		if len(conditions("idp")) == 0 {
			t.Error("nothing is reported about the other one")
		}
		<-time.After(20 * time.Minute)
		counted.expectGrowingWaits(t)
		lifted.Store(true)
		<-time.After(maxBackoff)
		if len(conditions("bad")) == 0 {
			t.Error("nothing is reported in the end")
		}
	})
}

// An object whose reduction panics is kept whole, and a pass reduces it: its MCPServer is not given up, nor is any other object of the kind.
func TestReductionThatPanicsIsOneObjectsAffair(t *testing.T) {
	counted := countPanics(t)
	operate(t, []apiruntime.Object{newServer("bad"), newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("bad")
		o.becomeReady("web")
		// What was made of the earlier version is damaged, so the next reduction panics.
		ref := inventory.Proxy.Ref("shop", "bad")
		poisoned := *o.caches.Item(ref).(*observed.Cached)
		poisoned.Annotations = make(observed.Pairs, 1)
		if err := o.caches.Store(ref).Update(&poisoned); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bad", "web"} {
			rewrite(o.apiServer, name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
		}
		o.rest()
		if n := len(counted.take()); n != 1 {
			t.Errorf("%d panics were handled, want 1", n)
		}
		for _, name := range []string{"bad", "web"} {
			if found, _ := get[*appsv1.Deployment](o.apiServer, name); found.Spec.Template.Spec.Containers[0].Image == "theirs" {
				t.Errorf("the change of Deployment %s was not set right", name)
			}
		}
	})
}

// everywhereBut selects everything, and panics where it is called from a function of a name, so often.
type everywhereBut struct {
	labels.Selector

	function string
	mu       sync.Mutex
	left     int
}

func (s *everywhereBut) Matches(of labels.Labels) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.Get("bad") == "" || s.left == 0 {
		return true
	}
	callers := make([]uintptr, 30)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.Contains(frame.Function, s.function) {
			s.left--
			panic("no such luck in " + s.function)
		}
	}
	return true
}

// An event whose handler panics is handled again after waits that grow, and those of other objects are handled meanwhile.
func TestHandlerThatPanicsIsOneObjectsAffair(t *testing.T) {
	counted := countPanics(t)
	selector := &everywhereBut{Selector: labels.Everything(), function: "IsSelected"}
	operate(t, nil, func(c *Config) { c.Selector = selector }, func(t *testing.T, o *operating) {
		selector.left = 8
		bad := newServer("bad")
		bad.Labels = map[string]string{"bad": "true"}
		o.add(bad)
		o.add(newServer("web"))
		o.rest()
		o.becomeReady("web")
		if exists[*appsv1.StatefulSet](o.apiServer, "bad") {
			t.Error("the event was handled although the handler panicked")
		}
		<-time.After(time.Minute)
		counted.expectGrowingWaits(t)
		o.becomeReady("bad")
	})
}
