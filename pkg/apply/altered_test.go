// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// image is the path of the image in what web returns.
const image = `.spec.template.spec.containers[name="web"].image`

// admitted is a cache that shows an object which admission has changed while the writer made it.
func admitted(t *testing.T, admit func(*deployment)) (*cached, apply.Outcome) {
	t.Helper()
	c := &cached{store: newStore(t, content, stamped)}
	c.admit = admit
	out := c.pass(web("a:1"), nil)
	c.keep()
	c.requests = nil
	return c, out
}

func otherImage(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "mirror/a:1" }

// expectAltered fails unless an outcome names just these fields, each with the value that was sent and the one that is stored.
func expectAltered(t *testing.T, out apply.Outcome, action apply.Action, want ...string) {
	t.Helper()
	altered, ok := errors.AsType[*apply.AlteredError](out.Err)
	if !ok || apply.ClassOf(out.Err) != apply.ClassAltered || out.Action != action {
		t.Fatalf("%s with error %v, want %s and Altered", out.Action, out.Err, action)
	}
	var got []string
	for _, f := range altered.Fields {
		got = append(got, fmt.Sprintf("%s: %v -> %v", f.Path, f.Sent, f.Stored))
		if !strings.Contains(out.Err.Error(), altered.Fields[0].Path) {
			t.Errorf("the message is %s", out.Err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("altered fields (-want +got):\n%s", diff)
	}
}

func TestWhatAdmissionStoresOtherwiseThanSentIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		admit func(*deployment)
		want  []string
	}{
		"a value":            {otherImage, []string{image + ": a:1 -> mirror/a:1"}},
		"a label is removed": {func(d *deployment) { delete(d.Labels, "app") }, []string{".metadata.labels.app: web -> <nil>"}},
		"a source is altered": {func(d *deployment) { d.Annotations[sourceAnnotation] = "forged" }, []string{
			".metadata.annotations." + sourceAnnotation + ": " + string(sourceUID) + "/1 -> forged",
		}},
		"a part of a map that is owned as a whole": {func(d *deployment) { d.Spec.Selector.MatchLabels["app"] = "nobody" }, []string{
			".spec.selector.matchLabels.app: web -> nobody",
		}},
		"an item is removed": {func(d *deployment) { d.Spec.Template.Spec.Containers = nil }, []string{
			image + ": a:1 -> <nil>", `.spec.template.spec.containers[name="web"].name: web -> <nil>`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := admitted(t, test.admit)
			expectAltered(t, out, apply.ActionCreated, test.want...)
			if !out.Wrote() || out.Problem() == "" || out.RetryAfter != apply.Policies()[apply.ClassAltered].FirstWait {
				t.Errorf("wrote %t, the problem %q, again after %s", out.Wrote(), out.Problem(), out.RetryAfter)
			}
		})
	}
}

// Fields that admission adds are not the writer's.
func TestWhatAdmissionAddsIsNoAlteration(t *testing.T) {
	for name, admit := range map[string]func(*deployment){
		"a label":       func(d *deployment) { d.Labels["team"] = "a" },
		"an annotation": func(d *deployment) { d.Spec.Template.Annotations = map[string]string{"mesh": "on"} },
		"a variable": func(d *deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INJECTED", Value: "x"}}
		},
		"a sidecar": func(d *deployment) {
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "mesh", Image: "mesh"}}, d.Spec.Template.Spec.Containers...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, out := admitted(t, admit)
			c.settled(out, apply.ActionCreated)
			c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
			c.expect("it is as it was sent")
		})
	}
}

// The values decide, and not who owns them.
func TestLostOwnersAreNoAlteration(t *testing.T) {
	c, out := admitted(t, func(d *deployment) { d.ManagedFields = nil })
	c.settled(out, apply.ActionCreated)
}

// While admission removes all owners, the API server refuses each change as a conflict with a manager that nobody knows. That is no conflict
// that somebody could settle, and it does not stay.
func TestAWriteWithoutAnyOwnersIsMadeOnceThereCanBeSome(t *testing.T) {
	c, out := admitted(t, func(d *deployment) { d.ManagedFields = nil })
	c.settled(out, apply.ActionCreated)
	out = c.pass(web("a:2"), nil)
	if apply.ClassOf(out.Err) != apply.ClassAltered || out.RetryAfter == 0 || !strings.Contains(out.Err.Error(), "managedFields") {
		t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
	}
	c.keep()
	c.admit = nil
	c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
	c.settled(c.pass(web("a:2"), nil), apply.ActionApplied)
	if got := c.stored.Spec.Template.Spec.Containers[0].Image; got != "a:2" {
		t.Errorf("the image is %s", got)
	}
	if conflicts := c.applier.Conflicts(); len(conflicts) > 0 {
		t.Errorf("conflicts stay: %v", conflicts)
	}
}

// An altered object costs one apply after each wait, in this process and after its restart, and heals with the first one after the end of
// the policy.
func TestAnAlteredObjectIsWrittenAgainAfterItsWait(t *testing.T) {
	c, out := admitted(t, otherImage)
	wait := out.RetryAfter
	for range 10 {
		for range 3 {
			expectAltered(t, c.pass(web("a:1"), nil), apply.ActionNone, image+": a:1 -> mirror/a:1")
		}
		c.expect("in the wait")
		c.clock.SetTime(c.clock.Now().Add(wait))
		wait = min(2*wait, apply.LongestWait)
		out = c.pass(web("a:1"), nil)
		expectAltered(t, out, apply.ActionApplied, image+": a:1 -> mirror/a:1")
		if out.RetryAfter != wait {
			t.Errorf("again after %s, want %s", out.RetryAfter, wait)
		}
		c.expect("after the wait", "apply content")
		c.keep()
	}
	c.restart()
	expectAltered(t, c.pass(web("a:1"), nil), apply.ActionApplied, image+": a:1 -> mirror/a:1")
	c.expect("a new process knows of no wait", "apply content")
	c.keep()
	c.admit = nil
	c.clock.SetTime(c.clock.Now().Add(time.Hour))
	c.settled(c.pass(web("a:1"), nil), apply.ActionApplied)
	c.keep()
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	c.expect("it is healed", "apply content")
	if got := c.stored.Spec.Template.Spec.Containers[0].Image; got != "a:1" {
		t.Errorf("the image is %s", got)
	}
}

func TestAChangeOfAnAlteredObjectEndsItsWait(t *testing.T) {
	for name, change := range map[string]func(c *cached){
		"by another client": func(c *cached) { c.update("them", func(d *deployment) { d.Labels["theirs"] = "x" }) },
		"of the intent":     func(*cached) {},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := admitted(t, otherImage)
			c.admit = nil
			change(c)
			c.keep()
			want := "a:1"
			if name == "of the intent" {
				want = "a:2"
			}
			c.settled(c.pass(web(want), nil), apply.ActionApplied)
			c.expect("at once", "apply content")
		})
	}
}
