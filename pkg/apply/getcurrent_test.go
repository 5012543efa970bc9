// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// shelf is a cache at some version, with one object or none.
type shelf struct {
	item    any
	version string
	err     error
	asked   []string
}

func (s *shelf) GetByKey(key string) (any, bool, error) {
	s.asked = append(s.asked, key)
	return s.item, s.item != nil, s.err
}

func (s *shelf) LastStoreSyncResourceVersion() string { return s.version }

func TestGetCurrentReturnsNothingFromBehindOurOwnWrite(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated) // at version 101
	behind := &shelf{item: live, version: "100"}
	if got, current, err := b.applier.GetCurrent(webRef, behind); got != nil || current || err != nil || len(behind.asked) > 0 {
		t.Errorf("behind our own write: %v, %t, %v", got, current, err)
	}
	for name, test := range map[string]struct {
		store *shelf
		ref   apply.ObjectRef
		key   string
		live  metav1.Object
		fails string
	}{
		"there":            {&shelf{item: live, version: "101"}, webRef, namespace + "/web", live, ""},
		"not there":        {&shelf{version: "102"}, webRef, namespace + "/web", nil, ""},
		"without one":      {&shelf{item: live, version: "102"}, clusterScoped(), "web", live, ""},
		"a broken store":   {&shelf{err: errors.New("broken"), version: "102"}, webRef, namespace + "/web", nil, "broken"},
		"no object at all": {&shelf{item: "text", version: "102"}, webRef, namespace + "/web", nil, namespace + "/web"},
	} {
		t.Run(name, func(t *testing.T) {
			got, current, err := b.applier.GetCurrent(test.ref, test.store)
			if got != test.live || current != (test.fails == "") {
				t.Errorf("got %v, current %t", got, current)
			}
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
			if len(test.store.asked) != 1 || test.store.asked[0] != test.key {
				t.Errorf("asked for %q, want %q", test.store.asked, test.key)
			}
		})
	}
}

func clusterScoped() apply.ObjectRef {
	ref := webRef
	ref.Namespace = ""
	return ref
}

// An object that is not the one meant is left alone, and one that is ours already is not asked about.
func TestAnObjectIsAskedAboutUntilItIsOurs(t *testing.T) {
	b := newBench(t, content, (*server).target)
	sync := func(live metav1.Object, mine bool) apply.Outcome {
		return do(t.Context(), b.applier, b.writer, apply.Request{
			Object:        webRef,
			Config:        web("a:2"),
			Observed:      apply.Observed{Live: live},
			Preconditions: apply.Preconditions{Mine: func(metav1.Object) bool { return mine }},
		})
	}
	theirs := after(t, "somebody", web("a:1"))
	out := sync(theirs, false)
	if apply.ClassOf(out.Err) != apply.ClassForeign || out.Action != apply.ActionRefused || out.Live != metav1.Object(theirs) {
		t.Errorf("theirs: %s with error %v, want Refused with class Foreign", out.Action, out.Err)
	}
	b.expect(0, "an object of somebody else's")
	if out.RetryAfter == 0 || !strings.Contains(out.Problem(), "something else") {
		t.Errorf("again after %s, problem %q", out.RetryAfter, out.Problem())
	}
	b.settled(sync(after(t, content.Name, web("a:1")), false), apply.ActionApplied)
	b.expect(1, "an object of which the writer owns something")
	b.settled(sync(after(t, "somebody", web("a:2")), true), apply.ActionApplied)
	b.expect(1, "an object that is the one meant")
}

func TestAnOutcomeTellsOfAProblemThatDoesNotPass(t *testing.T) {
	for class, policy := range apply.Policies() {
		out := apply.Outcome{Err: &apply.Refusal{Class: class, Reason: "because"}}
		if got, want := strings.Contains(out.Problem(), "because"), !policy.Passes; got != want {
			t.Errorf("%s: problem %q", class, out.Problem())
		}
		out = apply.Outcome{Err: &apply.Refusal{Class: class, Reason: "because", Repeated: true}}
		if !strings.Contains(out.Problem(), "because") {
			t.Errorf("%s, again: problem %q", class, out.Problem())
		}
	}
	if out := (apply.Outcome{}); out.Problem() != "" {
		t.Errorf("all is well: problem %q", out.Problem())
	}
}

func TestMustNewWriterPanicsWithoutARegisteredManager(t *testing.T) {
	if name := apply.MustNewWriter(registry(), content, newServer(t).target()).Name(); name != content.Name {
		t.Errorf("the writer's name is %q", name)
	}
	defer func() {
		if problem, ok := recover().(error); !ok || !strings.Contains(problem.Error(), `"other"`) {
			t.Errorf("it panics with %v", problem)
		}
	}()
	apply.MustNewWriter(registry(), fieldmanager.Writer{Name: "other", Kind: deploymentKind}, newServer(t).target())
	t.Error("a manager that is not registered gets a writer")
}
