// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

func keyIn(namespace, name string) cache.ObjectName { return cache.NewObjectName(namespace, name) }

func TestPaces(t *testing.T) {
	var woken []string
	p := newPaces(2, func(key cache.ObjectName) { woken = append(woken, key.Name) })
	expect := func(why string, want Takeovers, wake ...string) {
		t.Helper()
		if got := p.count(); got != want {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
		slices.Sort(woken)
		if !slices.Equal(woken, wake) {
			t.Errorf("%s: woke %v, want %v", why, woken, wake)
		}
		woken = nil
	}
	enter := func(namespace, name string, begun, want bool) {
		t.Helper()
		if got := p.enter(keyIn(namespace, name), begun); got != want {
			t.Errorf("%s/%s may enter: %t", namespace, name, got)
		}
	}
	enter("a", "1", false, true)
	enter("a", "2", false, true)
	enter("a", "3", false, false)
	enter("a", "4", false, false)
	enter("a", "1", false, true)
	expect("two of four", Takeovers{Active: 2, Waiting: 2})
	enter("b", "1", false, true)
	expect("another namespace", Takeovers{Active: 3, Waiting: 2})
	enter("a", "3", true, true)
	expect("one that was begun", Takeovers{Active: 4, Waiting: 1})
	p.leave(keyIn("a", "1"))
	expect("one leaves, and there are still as many as may be", Takeovers{Active: 3, Waiting: 1}, "4")
	enter("a", "4", false, false)
	p.leave(keyIn("a", "2"))
	expect("another leaves", Takeovers{Active: 2, Waiting: 1}, "4")
	enter("a", "4", false, true)
	expect("whose turn it is", Takeovers{Active: 3})
	p.leave(keyIn("a", "unknown"))
	p.leave(keyIn("b", "1"))
	expect("nobody waits", Takeovers{Active: 2})
	enter("a", "5", false, false)
	p.leave(keyIn("a", "5"))
	expect("who waited is gone", Takeovers{Active: 2})
	p.leave(keyIn("a", "3"))
	p.leave(keyIn("a", "4"))
	expect("all are done", Takeovers{})
	if len(p.active)+len(p.waiting) > 0 {
		t.Errorf("what is over is kept: %v, %v", p.active, p.waiting)
	}
}

// However they come and go, there are never more than may be, nobody is refused without cause, and whoever waits is
// woken when there is room.
func TestPacesKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		woken := map[cache.ObjectName]bool{}
		p := newPaces(limit, func(key cache.ObjectName) { woken[key] = true })
		active, waiting := map[cache.ObjectName]bool{}, map[cache.ObjectName]bool{}
		in := func(set map[cache.ObjectName]bool, namespace string) (count int) {
			for key := range set {
				if key.Namespace == namespace {
					count++
				}
			}
			return count
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := keyIn(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "name")))
			if rapid.Bool().Draw(t, "enters") {
				want := active[key] || in(active, key.Namespace) < limit
				if got := p.enter(key, false); got != want {
					t.Fatalf("%s may enter: %t", key, got)
				}
				active[key], waiting[key] = want, !want
			} else {
				left := active[key]
				active[key], waiting[key] = false, false
				clear(woken)
				p.leave(key)
				for other, waits := range waiting {
					if waits && left && other.Namespace == key.Namespace && !woken[other] {
						t.Fatalf("%s waits and was not woken", other)
					}
				}
			}
			for _, set := range []map[cache.ObjectName]bool{active, waiting} {
				for member, is := range set {
					if !is {
						delete(set, member)
					}
				}
			}
			if got, want := p.count(), (Takeovers{Active: len(active), Waiting: len(waiting)}); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}
