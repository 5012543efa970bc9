// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// wars are ways in which another client undoes what the writer writes.
var wars = map[string]func(c *cached){
	"a label is removed": func(c *cached) { c.update("them", func(d *deployment) { delete(d.Labels, "app") }) },
	"a field of the template is removed": func(c *cached) {
		c.update("them", func(d *deployment) { d.Spec.Template.Labels = nil; d.Generation++ })
	},
	"the object is deleted": func(c *cached) { c.stored, c.state = nil, nil },
	"a label is removed, and the object changes again while another request is made": func(c *cached) {
		c.update("them", func(d *deployment) { delete(d.Labels, "app") })
		c.keep()
		earlier := c.live()
		c.update("them", func(*deployment) {})
		c.read = func() (metav1.Object, error) { return earlier, nil }
		if out := c.pass(web("a:1"), func(req *apply.Request) { req.Confirm = true }); apply.ClassOf(out.Err) != apply.ClassMoved {
			c.t.Fatalf("%s with error %v, want one that says that the object is another one", out.Action, out.Err)
		}
		c.read = nil
	},
	"the claim is removed": func(c *cached) { c.stored.ManagedFields = nil },
	"a twin writes something else under the same name": func(c *cached) {
		twin := newStore(c.t, content, stamped)
		twin.stored, twin.version = c.stored, c.version
		twin.sync(web("twin"), func(req *apply.Request) { req.Live = twin.live() })
		c.stored, c.version = twin.stored, twin.version
	},
}

// fight undoes each write as soon as it is made, for a while, and returns when the writer has made it again.
func (c *cached) fight(undo func(c *cached), twin bool, lasting time.Duration) (made []time.Duration) {
	c.t.Helper()
	began := c.clock.Now()
	for c.clock.Now().Sub(began) < lasting {
		undo(c)
		if c.stored != nil {
			c.keep()
		}
		c.requests = nil
		out := c.pass(web("a:1"), nil)
		switch {
		case (out.Err == nil || apply.ClassOf(out.Err) == apply.ClassAltered) && out.Wrote() && len(made) < 100:
			made = append(made, c.clock.Now().Sub(began))
			c.keep()
		case c.isTwin(out.Err) != twin:
			c.t.Fatalf("by a twin: %t, want %t: %v", !twin, twin, out.Err)
		case apply.ClassOf(out.Err) != apply.ClassUndone || out.RetryAfter <= 0 || out.Problem() == "":
			c.t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
		default:
			for range 3 {
				if again := c.pass(web("a:1"), nil); apply.ClassOf(again.Err) != apply.ClassUndone || again.Action != apply.ActionNone {
					c.t.Fatalf("%s with error %v", again.Action, again.Err)
				}
			}
			for _, request := range c.requests {
				if request != "get" || out.Action == apply.ActionNone {
					c.t.Fatalf("%s was requested in the wait", request)
				}
			}
			c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
		}
	}
	return made
}

func (*cached) isTwin(err error) bool {
	refusal, ok := errors.AsType[*apply.Refusal](err)
	return ok && refusal.Twin
}

func TestAWriteThatOthersUndoIsMadeAgainAfterWaitsThatGrow(t *testing.T) {
	for name, undo := range wars {
		t.Run(name, func(t *testing.T) {
			c := managing(t)
			c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
			made := c.fight(undo, strings.HasPrefix(name, "a twin"), time.Hour)
			// Six times at once, then after 2, 4 and 8 seconds and so on.
			for i, want := range []int{0, 0, 0, 0, 0, 0, 2, 6, 14, 30, 62, 126, 254, 510, 1022} {
				if made[i] != time.Duration(want)*time.Second {
					t.Fatalf("it was made again after %v, want number %d after %ds", made, i+1, want)
				}
			}
			if got := made[len(made)-1] - made[len(made)-2]; got != apply.LongestWait {
				t.Errorf("the longest wait is %s", got)
			}

			// After peace it is made again at once.
			if out := c.pass(web("a:1"), nil); out.Err != nil || !out.Wrote() {
				t.Fatalf("after the last wait: %s with error %v", out.Action, out.Err)
			}
			c.keep()
			c.clock.SetTime(c.clock.Now().Add(2*apply.LongestWait + time.Second))
			c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
			undo(c)
			if c.stored != nil {
				c.keep()
			}
			if out := c.pass(web("a:1"), nil); out.Err != nil || !out.Wrote() {
				t.Errorf("after peace: %s with error %v", out.Action, out.Err)
			}
		})
	}
}

// Each write of a template may replace pods, whether or not admission changes what is written.
func TestATemplateThatOthersUndoIsWrittenAFewTimesInTenMinutes(t *testing.T) {
	for name, admit := range map[string]func(*deployment){"as it is": nil, "with another image": otherImage} {
		t.Run(name, func(t *testing.T) {
			c := &cached{store: newStore(t, content, func(to *target) { stamped(to); to.RollsPods = true })}
			c.admit = admit
			c.pass(web("a:1"), nil)
			c.keep()
			made := c.fight(wars["a field of the template is removed"], false, 10*time.Minute)
			want := []time.Duration{0, 0, 0, time.Minute, 3 * time.Minute, 7 * time.Minute}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("it was made again (-want +got):\n%s", diff)
			}
		})
	}
}

// Two owners that ask for an object of the same name, each with an intent of its own, do not make it again in turn as fast as it is deleted.
func TestAnObjectThatOthersDeleteIsMadeAgainAfterWaitsWhoeverAsksForIt(t *testing.T) {
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	for i := range 7 {
		wars["the object is deleted"](c)
		out := c.pass(web([]string{"a:1", "a:2"}[i%2]), nil)
		if i < 6 {
			c.settled(out, apply.ActionCreated)
			c.keep()
			c.settled(c.pass(web("a:1"), nil), []apply.Action{apply.ActionNone, apply.ActionApplied}[i%2])
			c.keep()
		} else if apply.ClassOf(out.Err) != apply.ClassUndone {
			t.Errorf("it is made again once more: %s with error %v", out.Action, out.Err)
		}
	}
}

// An edit does not wait, and neither does what somebody else has put right.
func TestWhatIsNewIsWrittenInTheMidstOfAWar(t *testing.T) {
	c, right := warring(t, nil)
	c.stored = right
	c.keep()
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	wars["a label is removed"](c)
	c.keep()
	c.settled(c.pass(web("a:2"), nil), apply.ActionApplied)
}

// An edit that the API server refuses again and again, since another client is faster, is none that others undo; nor is a creation that is
// refused. When either is accepted at last, the next removal is the first one.
func TestAWriteThatIsNotAcceptedIsNotUndone(t *testing.T) {
	for name, test := range map[string]struct {
		begin    func(c *cached)
		removals int
	}{
		"an edit":    {func(*cached) {}, 3},
		"a creation": {wars["the object is deleted"], 2}, // The deletion is the first one.
	} {
		for _, answer := range []string{"stale-version", "webhook-down", "forbidden"} {
			t.Run(name+" answered with "+answer, func(t *testing.T) {
				c := &cached{store: newStore(t, content, func(to *target) { stamped(to); to.RollsPods = true })}
				c.pass(web("a:1"), nil)
				c.keep()
				c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
				test.begin(c)
				c.refuse = func(string) error { return answered(t, answer) }
				for range 8 {
					if out := c.pass(web("a:2"), nil); out.Action != apply.ActionRefused || apply.ClassOf(out.Err) == apply.ClassUndone {
						t.Fatalf("%s with error %v", out.Action, out.Err)
					} else {
						c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
					}
				}
				c.refuse = nil
				if out := c.pass(web("a:2"), nil); out.Err != nil || !out.Wrote() {
					t.Fatalf("it is accepted: %s with error %v", out.Action, out.Err)
				}
				c.keep()
				for i := range test.removals {
					wars["a field of the template is removed"](c)
					c.keep()
					if i == 1 { // One that is refused in between counts no further.
						c.refuse = func(string) error { return answered(t, "stale-version") }
						if out := c.pass(web("a:2"), nil); apply.ClassOf(out.Err) != apply.ClassMoved {
							t.Fatalf("%s with error %v", out.Action, out.Err)
						} else {
							c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
						}
						c.refuse = nil
					}
					if out := c.pass(web("a:2"), nil); out.Err != nil || !out.Wrote() {
						t.Fatalf("after removal %d: %s with error %v", i+1, out.Action, out.Err)
					}
					c.keep()
				}
				wars["a field of the template is removed"](c)
				c.keep()
				if out := c.pass(web("a:2"), nil); apply.ClassOf(out.Err) != apply.ClassUndone {
					t.Errorf("after one more removal: %s with error %v", out.Action, out.Err)
				}
			})
		}
	}
}

// warring is a controller that waits before it restores the label app of its object. right is the object as it wants it.
func warring(t *testing.T, complete func(*apply.Request)) (c *cached, right *deployment) {
	t.Helper()
	c = managing(t)
	c.settled(c.pass(web("a:1"), complete), apply.ActionNone)
	for range 6 {
		wars["a label is removed"](c)
		c.keep()
		c.settled(c.pass(web("a:1"), complete), apply.ActionApplied)
		c.keep()
	}
	right = c.live()
	wars["a label is removed"](c)
	c.keep()
	if out := c.pass(web("a:1"), complete); apply.ClassOf(out.Err) != apply.ClassUndone || out.Action != apply.ActionRefused {
		t.Fatalf("%s with error %v", out.Action, out.Err)
	}
	return c, right
}

// A request to take fields may stay on an object for good. What takes none of them waits all the same.
func TestARequestToTakeThatTakesNothingDoesNotEndTheWaits(t *testing.T) {
	c, _ := warring(t, takeAll)
	if out := c.pass(web("a:1"), takeAll); apply.ClassOf(out.Err) != apply.ClassUndone || out.Action != apply.ActionNone || out.RetryAfter == 0 {
		t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
	}
}

// A manager whose claims the writer inherits may claim again and again.
func TestAnInheritanceDoesNotEndTheWaits(t *testing.T) {
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	for range 6 {
		c.update("them", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
		c.keep()
		c.settled(c.pass(web("a:1"), inheritAll), apply.ActionApplied)
		c.keep()
	}
	c.update("them", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
	c.keep()
	if out := c.pass(web("a:1"), inheritAll); apply.ClassOf(out.Err) != apply.ClassUndone || out.RetryAfter == 0 {
		t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
	}
}

// A conflict that arises in the wait is reported at once, and settled at once.
func TestAConflictIsReportedAndSettledInTheMidstOfAWar(t *testing.T) {
	seize := func(t *testing.T) *cached {
		c, _ := warring(t, nil)
		c.update("them", func(d *deployment) { d.Labels["app"] = "theirs" })
		c.keep()
		c.requests = nil
		out := c.pass(web("a:1"), nil)
		if apply.ClassOf(out.Err) != apply.ClassConflict || out.Action != apply.ActionRefused || out.RetryAfter != 0 {
			t.Fatalf("%s with error %v", out.Action, out.Err)
		}
		c.expect("a conflict in the wait")
		return c
	}
	t.Run("by its owner", func(t *testing.T) {
		c := seize(t)
		c.update("them", func(d *deployment) { delete(d.Labels, "app") })
		c.keep()
		if out := c.pass(web("a:1"), nil); apply.ClassOf(out.Err) != apply.ClassUndone || out.RetryAfter == 0 {
			t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
		}
	})
	t.Run("by a take", func(t *testing.T) {
		c := seize(t)
		c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
		c.expect("a take in the wait", "edit "+editor, "apply content")
	})
	t.Run("by a take that loses a race", func(t *testing.T) {
		c := seize(t)
		c.refuse = func(request string) error {
			if request == "apply content" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("the object has been modified"))
			}
			return nil
		}
		if out := c.pass(web("a:1"), takeAll); apply.ClassOf(out.Err) != apply.ClassMoved {
			t.Fatalf("%s with error %v", out.Action, out.Err)
		}
		c.refuse = nil
		c.update("somebody", func(d *deployment) { d.Labels["theirs"] = "x" })
		c.keep()
		c.clock.SetTime(c.clock.Now().Add(time.Second))
		c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
	})
}

// An unwanted object that another client creates whenever it is deleted is deleted less and less often.
func TestADeletionThatOthersUndoIsMadeAgainAfterWaitsThatGrow(t *testing.T) {
	c := managing(t)
	var deleted []time.Duration
	began := c.clock.Now()
	for copies := 0; c.clock.Now().Sub(began) < time.Hour; copies++ {
		live := c.live()
		live.UID = types.UID(fmt.Sprint("copy-", copies))
		for {
			out := c.applier.Delete(t.Context(), webRef, live, func(_ context.Context, _ string, _ metav1.DeleteOptions) error { return nil })
			if out.Err == nil {
				break
			}
			if apply.ClassOf(out.Err) != apply.ClassUndone || out.RetryAfter == 0 {
				t.Fatalf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
			}
			c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
		}
		deleted = append(deleted, c.clock.Now().Sub(began))
	}
	if most := slices.IndexFunc(deleted, func(at time.Duration) bool { return at > time.Minute }); most > 10 || len(deleted) > 20 {
		t.Errorf("it was deleted after %v", deleted)
	}
}

// What the writer's own process has deleted was not undone by another.
func TestWhatWasDeletedOnPurposeIsMadeAgainAtOnce(t *testing.T) {
	c := managing(t)
	for range 10 {
		want := apply.ActionNone
		if c.stored == nil {
			want = apply.ActionCreated
		}
		c.settled(c.pass(web("a:1"), nil), want)
		c.keep()
		if out := c.applier.Delete(t.Context(), webRef, c.live(), func(_ context.Context, _ string, _ metav1.DeleteOptions) error { return nil }); out.Err != nil {
			t.Fatal(out.Err)
		}
		c.stored, c.state = nil, nil
	}
}
