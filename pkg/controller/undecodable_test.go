// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// outcomes is an apply.Observer that counts outcomes by kind of object, action and class.
type outcomes struct {
	mu    sync.Mutex
	count map[[3]string]int
}

func (o *outcomes) Observe(out apply.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[[3]string]int{}
	}
	o.count[[3]string{out.Object.Kind.Kind, string(out.Action), string(apply.ClassOf(out.Err))}]++
}

func (o *outcomes) refused(kind string, class apply.Class) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[[3]string{kind, string(apply.ActionRefused), string(class)}]
}

// garble makes an object of a cache one that cannot be decoded, and returns what puts it back without an event.
func garble(t *testing.T, store cache.Store, name string) (restore func()) {
	t.Helper()
	item, exists, err := store.GetByKey("shop/" + name)
	if err != nil || !exists {
		t.Fatalf("%s is not cached: %v", name, err)
	}
	broken := func(whole *packed) *packed {
		garbled := *whole
		garbled.text = whole.text[:whole.ends[partContent-1]] + "no such content"
		return &garbled
	}
	replacement := item
	switch whole := item.(type) {
	case *packed:
		replacement = broken(whole)
	case *packedPod:
		pod := *whole
		pod.packed = broken(whole.packed)
		replacement = &pod
	}
	put := func(item any) {
		if err := store.Update(item); err != nil {
			t.Error(err)
		}
	}
	put(replacement)
	return func() { put(item) }
}

// An object that a cache holds and that cannot be decoded is not gone: nothing is done and nothing forgotten, it is counted,
// and looked at again without an event.
func TestUndecodableIsNotGone(t *testing.T) {
	for name, test := range map[string]struct {
		kind  string
		store func(*scope) cache.Store
		name  string
	}{
		"MCPServer":   {"MCPServer", func(s *scope) cache.Store { return s.serverStore.GetStore() }, "web"},
		"StatefulSet": {"StatefulSet", func(s *scope) cache.Store { return s.childStores[managers.StatefulSet].GetStore() }, "web"},
		"backend pod": {"Pod", func(s *scope) cache.Store { return s.backendStore.GetStore() }, "web-0"},
		"proxy pod":   {"Pod", func(s *scope) cache.Store { return s.proxyStore.GetStore() }, proxyPodName},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &outcomes{}
			operate(t, []runtime.Object{newServer("web")}, func(c *Config) { c.Observer = seen }, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				seize(t, o, "evil") // a conflict, which is remembered
				o.rest()
				o.took()
				o.events.heard()
				restore := garble(t, test.store(o.caches.scope("shop")), test.name)
				o.queue.Add(key("web"))
				<-time.After(time.Hour)
				o.rest()
				o.expect(nil, "an object that cannot be decoded")
				if n := seen.refused(test.kind, apply.ClassTransient); n < 10 || n > 30 {
					t.Errorf("it was counted %d times in an hour", n)
				}
				if conflicts, rollouts := o.Conflicts(), o.Rollouts(); len(conflicts) != 1 || len(rollouts) != 2 {
					t.Errorf("forgotten: conflicts %v, rollouts %v", conflicts, rollouts)
				}
				restore()
				<-time.After(apply.LongestWait)
				o.rest()
				if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != "False" {
					t.Errorf("FieldsOwned is %s", status)
				}
				before := seen.refused(test.kind, apply.ClassTransient)
				<-time.After(apply.LongestWait)
				o.rest()
				if after := seen.refused(test.kind, apply.ClassTransient); after != before {
					t.Error("it is still looked at as one that cannot be decoded")
				}
			})
		})
	}
}
