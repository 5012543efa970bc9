// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
)

// A number that is set again and again is set back after waits that double, up to a bound, and at once again after
// peace for as long as the longest wait.
func TestWaitsGrow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(bubbleStart)
	c := &priorityqueue.Wait{}
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	expect := func(want time.Duration, why string) {
		t.Helper()
		if got := c.Left(clock.Now()); got != want {
			t.Fatalf("%s: wait for %s, want %s", why, got, want)
		}
	}
	expect(0, "the first time")
	want := capBounds.Shortest
	for range 12 {
		c.Begin(clock.Now(), capBounds)
		expect(want, "it was just set back")
		pass(want / 2)
		expect(want-want/2, "half of the wait is over")
		pass(want - want/2)
		expect(0, "the wait is over")
		want = min(2*want, capBounds.Longest)
	}
	if want != capBounds.Longest {
		t.Fatalf("the wait has grown to %s, want %s", want, capBounds.Longest)
	}
	pass(capBounds.Longest)
	expect(0, "peace, not long enough yet")
	c.Begin(clock.Now(), capBounds)
	expect(capBounds.Longest, "it goes on as before")
	pass(2*capBounds.Longest + time.Second)
	expect(0, "peace for long")
	c.Begin(clock.Now(), capBounds)
	expect(capBounds.Shortest, "it begins anew")
}

func TestAWorkloadWithoutANumberHasOneReplica(t *testing.T) {
	three := int32(3)
	for want, live := range map[int32][]metav1.Object{
		1: {&appsv1.Deployment{}, &appsv1.StatefulSet{}},
		3: {&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &three}}, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}}},
	} {
		for _, obj := range live {
			if got := replicasOf(obj); got != want {
				t.Errorf("%T has %d replicas, want %d", obj, got, want)
			}
		}
	}
}

// scaledTier is one of the two tiers, as tests see it.
type scaledTier struct {
	writer string
	object string
	// ask writes the number to the MCPServer; nil is none.
	ask func(server *v1beta1.MCPServer, replicas *int32)
	// scale sets the number from outside.
	scale  func(s *apiServer, replicas int32)
	number func(s *apiServer) int32
	owners func(s *apiServer) []string
}

var workloads = map[string]scaledTier{
	"proxy": {
		writer: managers.ProxyReplicas, object: "Deployment/web",
		ask: func(server *v1beta1.MCPServer, replicas *int32) { server.Spec.Replicas = replicas },
		scale: func(s *apiServer, replicas int32) {
			change(s, "web", func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
		},
		number: numberOf[*appsv1.Deployment],
		owners: func(s *apiServer) []string { return ownersOf[*appsv1.Deployment](s, "web", render.ReplicasPath) },
	},
	"backend": {
		writer: managers.BackendReplicas, object: "StatefulSet/web",
		ask: func(server *v1beta1.MCPServer, replicas *int32) { server.Spec.BackendReplicas = replicas },
		scale: func(s *apiServer, replicas int32) {
			change(s, "web", func(set *appsv1.StatefulSet) { set.Spec.Replicas = &replicas })
		},
		number: numberOf[*appsv1.StatefulSet],
		owners: func(s *apiServer) []string { return ownersOf[*appsv1.StatefulSet](s, "web", render.ReplicasPath) },
	},
}

func numberOf[L runtime.Object](s *apiServer) int32 {
	s.t.Helper()
	found, _ := get[L](s, "web")
	return replicasOf(access(found))
}

// toChildren are the writes but those of the status.
func (o *operating) toChildren() []string {
	return slices.DeleteFunc(o.took(), func(w string) bool { return strings.Contains(w, "/status ") })
}

// expectTier fails unless the tier is as it should be, and just these requests were sent to children.
func (o *operating) expectTier(w scaledTier, why string, number int32, owners, requests []string) {
	o.t.Helper()
	o.rest()
	got := slices.DeleteFunc(o.toChildren(), func(request string) bool {
		return !strings.HasSuffix(request, w.writer) && !strings.HasSuffix(request, managers.Ownership)
	})
	if !slices.Equal(got, requests) {
		o.t.Errorf("%s: requests %q, want %q", why, got, requests)
	}
	if n := w.number(o.apiServer); n != number {
		o.t.Errorf("%s: %d replicas, want %d", why, n, number)
	}
	if got := w.owners(o.apiServer); !slices.Equal(got, owners) {
		o.t.Errorf("%s: owners %q, want %q", why, got, owners)
	}
}

// The number of replicas is the spec's where it names one, and anybody's where it does not.
func TestReplicasAreHandedOver(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				ask := func(replicas int32) {
					change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
						w.ask(server, &replicas)
						if replicas == 0 {
							w.ask(server, nil)
						}
					})
				}
				ours, theirs := []string{w.writer}, []string{"somebody"}
				applied, edited := "apply "+w.object+" "+w.writer, "edit "+w.object+" "+managers.Ownership

				w.scale(o.apiServer, 5)
				o.expectTier(w, "scaled, the spec says nothing", 5, theirs, nil)
				ask(2)
				o.expectTier(w, "the spec says otherwise", 5, theirs, []string{applied})
				if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `"somebody"`) {
					t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
				}
				ask(5)
				o.expectTier(w, "the spec says the same", 5, append(slices.Clone(ours), theirs...), []string{applied})
				ask(0)
				o.expectTier(w, "the spec says nothing any more", 5, theirs, []string{applied, edited})
				w.scale(o.apiServer, 7)
				o.expectTier(w, "scaled again", 7, theirs, nil)
				if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
					t.Errorf("FieldsOwned is %s at last", status)
				}
			})
		})
	}
}

// A number of ours that is not asked for any more stays; nobody owns it, so who scales meets no conflict.
func TestReplicasAreGivenUpWithoutAReset(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			four := int32(4)
			w.ask(server, &four)
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				if got := w.owners(o.apiServer); w.number(o.apiServer) != 4 || !slices.Equal(got, []string{w.writer}) {
					t.Fatalf("%d replicas of %q, want 4 of ours", w.number(o.apiServer), got)
				}
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) { w.ask(server, nil) })
				o.expectTier(w, "the spec says nothing any more", 4, nil,
					[]string{"apply " + w.object + " " + w.writer, "edit " + w.object + " " + managers.Ownership})
				if told := o.events.heard(); !slices.ContainsFunc(told, func(e string) bool { return strings.Contains(e, " Normal FieldsReleased Apply: ") }) {
					t.Errorf("events %q, want one about what was given up", told)
				}
			})
		})
	}
}

// A tier of a server with stdio that is to have no pod goes back to none, not to one first.
func TestStdioThatIsToHaveNoPodGoesBackToNone(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			server, none := newServer("web"), int32(0)
			server.Spec.Transport = v1beta1.TransportStdio
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) { w.ask(server, &none) })
				o.rest()
				o.took()
				applied, edited := "apply "+w.object+" "+w.writer, "edit "+w.object+" "+managers.Ownership

				w.scale(o.apiServer, 5)
				o.expectTier(w, "scaled up", 0, []string{w.writer}, []string{edited, applied})
				if _, _, message := o.condition("web", v1beta1.ConditionStdioReplicaCapped); !strings.Contains(message, "to 5; it is set back to 0: ") {
					t.Errorf("StdioReplicaCapped says %s", message)
				}
			})
		})
	}
}

// A number of replicas that cannot be set back, as the API server refuses the edit that takes it, is tried after waits that grow.
func TestRefusedTakeOfReplicasWaits(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Spec.Transport = v1beta1.TransportStdio
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				var refused atomic.Int32
				o.before.set(func(w write) error {
					if w.verb != "edit" {
						return nil
					}
					refused.Add(1)
					return apierrors.NewServiceUnavailable("later")
				})
				w.scale(o.apiServer, 3)
				<-time.After(20 * time.Minute)
				o.rest()
				if n := refused.Load(); n < 10 || n > 20 {
					t.Errorf("%d edits in twenty minutes, want some and few", n)
				}
				status, reason, message := o.condition("web", v1beta1.ConditionApplied)
				if status != metav1.ConditionFalse || reason != v1beta1.ReasonRetrying || !strings.Contains(message, "/web: ") {
					t.Errorf("Applied is %s because of %s: %s", status, reason, message)
				}
				o.before.set(nil)
				<-time.After(apply.LongestWait)
				o.rest()
				if got := w.number(o.apiServer); got != 1 {
					t.Errorf("%d replicas at last", got)
				}
			})
		})
	}
}

// A server with stdio has one pod in each tier, whoever scales it, and who keeps scaling it is not answered each time.
func TestStdioIsHeldAtOnePod(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Spec.Transport = v1beta1.TransportStdio
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.events.heard()
				applied, edited := "apply "+w.object+" "+w.writer, "edit "+w.object+" "+managers.Ownership
				ours := []string{w.writer}

				w.scale(o.apiServer, 3)
				o.expectTier(w, "scaled up", 1, ours, []string{applied, edited, applied})
				status, reason, message := o.condition("web", v1beta1.ConditionStdioReplicaCapped)
				if status != metav1.ConditionTrue || reason != "StdioReplicasReset" || !strings.Contains(message, `"somebody" set .spec.replicas`) {
					t.Errorf("StdioReplicaCapped is %s because of %s: %s", status, reason, message)
				}
				w.scale(o.apiServer, 0)
				o.expectTier(w, "scaled to nothing", 0, []string{"somebody"}, []string{applied}) // which drops the record of its number
				w.scale(o.apiServer, 1)
				o.rest()
				o.took()
				o.events.heard()

				// Once a minute for an hour: the waits grow to five minutes.
				requests := 0
				for range 60 {
					w.scale(o.apiServer, 3)
					<-time.After(time.Minute)
					requests += len(o.took())
				}
				if most := 3 * 20; requests > most || requests == 0 {
					t.Errorf("%d requests against somebody who scales 60 times, want some and %d at most", requests, most)
				}
				if told := o.events.heard(); len(slices.DeleteFunc(told, func(e string) bool { return strings.Contains(e, "FieldsTaken") })) > 1 {
					t.Errorf("events %q, want one about the cap at most", told)
				}
				<-time.After(capBounds.Longest)
				o.rest()
				if n := w.number(o.apiServer); n != 1 {
					t.Errorf("%d replicas at last", n)
				}
			})
		})
	}
}

// What the spec asks for beyond one pod is reported once, with who scales it beyond that, and the report does not grow.
func TestMorePodsOfStdioAreReportedOnce(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Spec.Transport = v1beta1.TransportStdio
			w.ask(server, new(int32(5)))
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				expect := func(when, want string) {
					t.Helper()
					for range 2 {
						if _, _, got := o.condition("web", v1beta1.ConditionStdioReplicaCapped); got != want {
							t.Errorf("%s, StdioReplicaCapped says\n%s\nwant\n%s", when, got, want)
						}
						o.took()
						o.queue.Add(key("web"))
						o.rest()
						o.expect(nil, when+", after another pass")
					}
				}
				_, _, asked := o.condition("web", v1beta1.ConditionStdioReplicaCapped)
				if n := strings.Count(asked, "is 5 and rendered as 1"); n != 1 {
					t.Fatalf("StdioReplicaCapped names the spec %d times: %s", n, asked)
				}
				expect("at first", asked)
				w.scale(o.apiServer, 3)
				o.rest()
				_, _, scaled := o.condition("web", v1beta1.ConditionStdioReplicaCapped)
				if !strings.HasSuffix(scaled, "; "+asked) || !strings.Contains(scaled, `"somebody" set .spec.replicas`) {
					t.Fatalf("StdioReplicaCapped does not name the spec and who scales: %s", scaled)
				}
				expect("scaled", scaled)
			})
		})
	}
}
