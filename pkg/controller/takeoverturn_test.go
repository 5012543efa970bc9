// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/turns"
)

func makeUnrenderable(server *v1beta1.MCPServer) {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "issuer"}
}

// concernsServer reports whether a write is about an MCPServer itself, and not about its status.
func concernsServer(w write) bool { return w.kind == managers.MCPServer.Kind && w.subresource == "" }

// others are the names but one.
func others(names []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == one })
}

// One that got a slot and became unrenderable before it began makes room.
func TestTakeoverThatBecameInvalidBeforeItBeganMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, names := crew(2)
		s := newAPIServer(t, objects...)
		first := ""
		s.before.set(func(w write) error {
			if !concernsServer(w) || first != "" && w.name != first {
				return nil
			}
			if first == "" {
				first = w.name
				change(s, first, makeUnrenderable)
			}
			return apierrors.NewServiceUnavailable("later")
		})
		o := start(t, s, atOnce(1))
		defer o.end()
		o.rest()
		if begun := o.begun(names); !slices.Equal(begun, others(names, first)) {
			t.Errorf("%v were begun: the other one waits", begun)
		}
		if _, reason, message := o.condition(first, v1beta1.ConditionTakenOver); reason != v1beta1.ReasonCannotTakeOver {
			t.Errorf("TakenOver says %s: %s", reason, message)
		}
	})
}

// One that is being deleted makes room, though somebody else's finalizer keeps it.
func TestTakeoverOfWhatIsBeingDeletedMakesRoom(t *testing.T) {
	objects, names := crew(2)
	operate(t, objects, atOnce(1), func(t *testing.T, o *operating) {
		first := o.begun(names)[0]
		change(o.apiServer, first, func(server *v1beta1.MCPServer) {
			now := metav1.NewTime(time.Now())
			server.DeletionTimestamp = &now
			server.Finalizers = append(server.Finalizers, "example.com/keep")
		})
		o.rest()
		if begun := o.begun(others(names, first)); len(begun) != 1 {
			t.Error("the other one waits")
		}
		o.expectTakeovers("one is being deleted", turns.Counts{Active: 1})
	})
}

// A takeover that waits for a backend that does not come back lets others begin after a while. It costs nothing while it
// waits, and goes on when the backend is back.
func TestTakeoverThatWaitsForALongTimeMakesRoom(t *testing.T) {
	var objects []runtime.Object
	names := []string{"web-0", "web-1", "web-2"}
	for _, name := range names {
		objects = append(objects, byToolHive(name, "1")...)
	}
	operate(t, objects, atOnce(1), func(t *testing.T, o *operating) {
		for count := 1; count <= len(names); count++ {
			if begun := o.begun(names); len(begun) != count {
				t.Fatalf("%v were begun, want %d", begun, count)
			}
			o.expectTakeovers("one after the other", turns.Counts{Active: 1, Waiting: len(names) - count, Suspended: count - 1})
			<-time.After(turns.Patience)
			o.rest()
		}
		o.expectTakeovers("none gets on", turns.Counts{Suspended: len(names)})
		o.took()
		o.reads()
		<-time.After(7 * 24 * time.Hour)
		if writes, reads := o.took(), o.reads(); len(writes)+len(reads) > 0 {
			t.Errorf("a week costs %v and %v", writes, reads)
		}
		backendReady(o.apiServer, names[0])
		o.addBackendPod(o.server(names[0]), "second")
		o.rest()
		o.expectTakeovers("one has got on to its end", turns.Counts{Suspended: len(names) - 1})
		o.replaceProxy(names[0])
		if status, reason, message := o.condition(names[0], v1beta1.ConditionTakenOver); status != metav1.ConditionTrue {
			t.Errorf("TakenOver is %s because of %s: %s", status, reason, message)
		}
	})
}

// statuses are the writes of statuses among some.
func statuses(writes []string, names ...string) (found []string) {
	for _, name := range names {
		for _, w := range writes {
			if w == "apply MCPServer/"+name+"/status "+managers.Status {
				found = append(found, name)
			}
		}
	}
	return found
}

// Those that wait tell so by one condition, which is written once: not when others come and go, not by a resync and not
// after a restart. Nothing else of theirs is written, and no event is sent.
func TestWaitingForATakeoverIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, names := crew(5)
		s := newAPIServer(t, objects...)
		configure := func(c *Config) { c.TakeoversAtOnce, c.Resync = 1, time.Hour }
		o := start(t, s, configure)
		o.rest()
		first := o.begun(names)[0]
		waiting := others(names, first)
		writes := o.took()
		if told := statuses(writes, waiting...); !slices.Equal(told, waiting) {
			t.Errorf("the statuses of %v were written, want those of %v", told, waiting)
		}
		for _, w := range writes {
			if !strings.Contains(w, "/"+first) && !strings.Contains(w, "/mcp-"+first) && len(statuses([]string{w}, waiting...)) == 0 {
				t.Errorf("%s", w)
			}
		}
		for _, name := range waiting {
			status, reason, message := o.condition(name, v1beta1.ConditionTakenOver)
			if status != metav1.ConditionFalse || reason != "Waiting" || !strings.Contains(message, first+" under way") ||
				!strings.Contains(message, "--takeovers-at-once is 1") {
				t.Errorf("TakenOver of %s is %s because of %s: %s", name, status, reason, message)
			}
		}
		for _, event := range o.events.heard() {
			if strings.Contains(event, "Waiting") {
				t.Errorf("event %s", event)
			}
		}

		o.replaceProxy(first)
		begun := others(o.begun(names), first)
		if len(begun) != 1 {
			t.Fatalf("%v were begun after the first", begun)
		}
		waiting = others(waiting, begun[0])
		<-time.After(9 * time.Minute)
		if told := statuses(o.took(), waiting...); len(told) > 0 {
			t.Errorf("the statuses of %v were written again", told)
		}
		o.end()

		o = start(t, s, configure)
		defer o.end()
		o.rest()
		o.expectTakeovers("after a restart", turns.Counts{Active: 1, Waiting: len(waiting)})
		if writes := o.took(); len(writes) > 0 {
			t.Errorf("a restart costs %v", writes)
		}
	})
}

// One whose turn has come, and of which not even the beginning of its takeover may be recorded, does not say that it waits for its turn.
func TestTakeoverThatIsRefusedAtOnceSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, names := crew(2)
		s := newAPIServer(t, objects...)
		s.before.set(func(w write) error {
			if concernsServer(w) && w.name == names[0] {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "mcpservers"}, w.name, errors.New("a policy says no"))
			}
			return nil
		})
		o := start(t, s, atOnce(1))
		defer o.end()
		o.rest()
		if begun := o.begun(names); !slices.Equal(begun, names[1:]) {
			t.Fatalf("%v were begun", begun)
		}
		o.replaceProxy(names[1])
		<-time.After(2 * maxBackoff)
		if _, reason, message := o.condition(names[0], v1beta1.ConditionTakenOver); reason != v1beta1.ReasonCannotTakeOver || !strings.Contains(message, "a policy says no") {
			t.Errorf("TakenOver says %s: %s", reason, message)
		}
		if told := o.server(names[0]).Status.Conditions; len(told) != 1 {
			t.Errorf("nothing was to be taken, and the status has %v", told)
		}
	})
}

// What waited does not say so any more when takeovers are turned off. Others are told nothing.
func TestTakeoverOffTellsThoseThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, names := crew(2)
		s := newAPIServer(t, objects...)
		o := start(t, s, atOnce(1))
		o.rest()
		waits := others(names, o.begun(names)[0])[0]
		o.end()
		for _, obj := range byToolHive("untold", "2") {
			s.add(obj)
		}
		s.took()
		o = start(t, s, func(c *Config) { c.Takeover = TakeoverOff })
		defer o.end()
		o.rest()
		if _, reason, message := o.condition(waits, v1beta1.ConditionTakenOver); reason != v1beta1.ReasonTakeoverOff {
			t.Errorf("TakenOver says %s: %s", reason, message)
		}
		if told := statuses(o.took(), waits, "untold"); !slices.Equal(told, []string{waits}) {
			t.Errorf("the statuses of %v were written", told)
		}
	})
}
