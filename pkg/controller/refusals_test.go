// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// unserved is what an API server answers that does not serve a resource yet.
func unserved() error {
	return apierrors.NewGenericServerResponse(404, "PATCH", statefulSets, "web", "404 page not found", 0, true)
}

// deniedBody is a 422 as a webhook answers it, which looks like the verdict of the API server's own validation.
func deniedBody() error {
	return apierrors.FromObject(&metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
		Message: `admission webhook "images.example.com" denied the request: no such image`,
	})
}

// answers that look final and are not.
var passing = map[string]func() error{
	"leader changed":          func() error { return etcdError("leader changed") },
	"request timed out":       func() error { return etcdError("request timed out") },
	"database space exceeded": func() error { return etcdError("mvcc: database space exceeded") },
	"plain 404":               unserved,
	"422 of a webhook":        deniedBody,
	"not found":               func() error { return apierrors.NewNotFound(statefulSets, "web") },
	"an unknown code": func() error {
		return apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: 418, Message: "tea"})
	},
	"bad request": func() error { return apierrors.NewBadRequest("hm") },
}

// faults answers those writes that a test is about, while it is on, and counts them.
type faults struct {
	on     atomic.Bool
	mu     sync.Mutex
	caught []time.Time
}

func (f *faults) inject(o *operating, about func(write) bool, answer func() error) {
	o.before.set(func(w write) error {
		if !about(w) || !f.on.Load() {
			return nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.caught = append(f.caught, time.Now())
		return answer()
	})
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.caught)
}

// scene is a write that can be refused.
type scene struct {
	about func(write) bool
	// cause makes the operator want to write.
	cause func(o *operating)
	done  func(o *operating) bool
}

func scenes() map[string]scene {
	by := func(manager, verb string) func(write) bool {
		return func(w write) bool { return w.manager == manager && w.verb == verb }
	}
	settled := func(o *operating) bool {
		return meta.IsStatusConditionTrue(o.server("web").Status.Conditions, v1beta1.ConditionApplied) &&
			o.server("web").Status.ObservedGeneration == o.server("web").Generation
	}
	return map[string]scene{
		"creation of the StatefulSet": {
			by("freehold-backend", "apply"),
			func(o *operating) { remove[*appsv1.StatefulSet](o.apiServer, "web") },
			func(o *operating) bool { return exists[*appsv1.StatefulSet](o.apiServer, "web") && settled(o) },
		},
		"change of the StatefulSet": {
			by("freehold-backend", "apply"),
			func(o *operating) {
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.Args = []string{"x"} })
			},
			func(o *operating) bool {
				set, ok := get[*appsv1.StatefulSet](o.apiServer, "web")
				return ok && slices.Equal(set.Spec.Template.Spec.Containers[0].Args, []string{"x"}) && settled(o)
			},
		},
		"finalizer": {
			by("freehold-finalizer", "apply"),
			func(o *operating) {
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Finalizers = nil })
			},
			func(o *operating) bool { return len(o.server("web").Finalizers) == 1 && settled(o) },
		},
		"release of the finalizer": {
			by("freehold-finalizer", "apply"),
			func(o *operating) { markDeleted(o.apiServer, "web") },
			func(o *operating) bool { return !exists[*v1beta1.MCPServer](o.apiServer, "web") },
		},
		"status": {
			by("freehold-status", "apply"),
			func(o *operating) {
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 })
			},
			settled,
		},
		"edit of managedFields": {
			by("freehold-ownership", "edit"),
			func(o *operating) {
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) {
					s.Annotations = map[string]string{"freehold.dev/yield": "statefulset.apps/web:.spec.template.spec.containers[name=\"mcp\"].image"}
				})
			},
			func(o *operating) bool {
				return meta.IsStatusConditionTrue(o.server("web").Status.Conditions, v1beta1.ConditionFieldsYielded)
			},
		},
		"deletion of a child": {
			func(w write) bool { return w.verb == "delete" && w.name == "mcp-web" },
			func(o *operating) {
				// No proxy of the earlier transport is left.
				remove[*corev1.Pod](o.apiServer, "web-5d8f9-x2x4z")
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.Transport = v1beta1.TransportStdio })
				o.rest()
				proxyReady(o.apiServer, "web")
			},
			func(o *operating) bool { return !exists[*corev1.Service](o.apiServer, "mcp-web") && settled(o) },
		},
	}
}

// One answer that looks final, and is not, holds nothing up for longer than a moment, whatever write it is the answer to,
// and nothing else has to happen for the write to be made.
func TestOneBadAnswerIsForgotten(t *testing.T) {
	for name, scene := range scenes() {
		for kind, answer := range passing {
			t.Run(name+"/"+kind, func(t *testing.T) {
				operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
					o.becomeReady("web")
					var f faults
					f.on.Store(true)
					f.inject(o, scene.about, func() error { f.on.Store(false); return answer() })
					scene.cause(o)
					<-time.After(time.Minute)
					o.rest()
					if f.count() != 1 || !scene.done(o) {
						t.Errorf("after %d refusals it is done: %t", f.count(), scene.done(o))
					}
				})
			})
		}
	}
}

// A refusal that stands for hours costs a few requests in an hour, whatever events come, and ends ten minutes after its
// cause at the latest, without an event.
func TestNoRefusalIsForEver(t *testing.T) {
	for name, scene := range scenes() {
		for kind, answer := range passing {
			if name != "creation of the StatefulSet" && kind != "leader changed" {
				continue // The class decides, and TestOneBadAnswerIsForgotten has them all.
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
					o.becomeReady("web")
					var f faults
					f.on.Store(true)
					f.inject(o, scene.about, answer)
					scene.cause(o)
					for range 2 * 60 {
						<-time.After(time.Minute)
						o.queue.Add(key("web")) // an event that changes nothing
					}
					o.rest()
					// 0.2, 0.4 ... 409 seconds, and then one in ten minutes.
					if n := f.count(); n < 14 || n > 26 {
						t.Errorf("%d requests in two hours", n)
					}
					for i := 1; i < len(f.caught); i++ {
						if wait := f.caught[i].Sub(f.caught[i-1]); wait > apply.LongestWait+time.Second {
							t.Errorf("a wait of %s", wait)
						}
					}
					f.on.Store(false)
					<-time.After(apply.LongestWait + time.Second)
					o.rest()
					if !scene.done(o) {
						t.Error("it is not done ten minutes after the cause is gone")
					}
				})
			})
		}
	}
}

// What holds a writer back longer than its first retry is told: once, in a condition that says what to do and by an event,
// and Ready is False meanwhile. The MCPServer does not count as failed: it serves.
func TestADelayIsToldInWordsThatStayTheSame(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var f faults
		f.on.Store(true)
		n := 0
		f.inject(o, func(w write) bool { return w.kind == "Service" }, func() error {
			n++
			return etcdError(fmt.Sprintf("request %d timed out", n))
		})
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 })
		o.rest()
		backendReady(o.apiServer, "web")
		proxyReady(o.apiServer, "web")
		<-time.After(time.Hour)
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionApplied)
		if status != metav1.ConditionFalse || reason != "Retrying" || !strings.Contains(message, "service/mcp-web") || !strings.Contains(message, "code 500") {
			t.Errorf("Applied is %s because of %s: %s", status, reason, message)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionReady); status != metav1.ConditionFalse || reason != "Retrying" {
			t.Errorf("Ready is %s because of %s", status, reason)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionReconciling); status != metav1.ConditionTrue || reason != "Retrying" {
			t.Errorf("Reconciling is %s because of %s", status, reason)
		}
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhasePending {
			t.Errorf("phase %s", phase)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.HasPrefix(told[0], "shop/web Warning Retrying Apply: service/") {
			t.Errorf("events %q, want one", told)
		}
		f.on.Store(false)
		<-time.After(apply.LongestWait)
		o.rest()
		for _, condition := range []string{v1beta1.ConditionApplied, v1beta1.ConditionReady} {
			if status, reason, _ := o.condition("web", condition); status != metav1.ConditionTrue {
				t.Errorf("%s is %s because of %s after all was written", condition, status, reason)
			}
		}
	})
}

// What is over with the first retry is not told, and costs no status.
func TestMomentsAreNotTold(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		before := o.server("web").ResourceVersion
		var f faults
		f.on.Store(true)
		f.inject(o, func(w write) bool { return w.kind == "Service" }, func() error { f.on.Store(false); return etcdError("leader changed") })
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		if f.count() != 1 || !exists[*corev1.Service](o.apiServer, "mcp-web-proxy") {
			t.Error("the Service is not back")
		}
		if after := o.server("web").ResourceVersion; after != before {
			t.Errorf("the status was written: %+v", o.server("web").Status)
		}
		if told := o.events.heard(); len(told) > 0 {
			t.Errorf("events %q", told)
		}
	})
}

// A conflict that is known stays told while the API server gives no answer to the apply that would end it.
func TestConflictStaysToldWithoutAnAnswer(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		if told := o.events.heard(); len(told) != 1 {
			t.Errorf("events %q, want one", told)
		}
		var f faults
		f.on.Store(true)
		f.inject(o, func(w write) bool { return w.manager == "freehold-backend" }, func() error { return apierrors.NewTooManyRequestsError("later") })
		var lied []string
		stopped := make(chan struct{})
		watching, _ := o.servers.ToolhiveV1beta1().MCPServers("shop").Watch(t.Context(), metav1.ListOptions{})
		go func() {
			defer close(stopped)
			for event := range watching.ResultChan() {
				for _, c := range event.Object.(*v1beta1.MCPServer).Status.Conditions {
					told := c.ObservedGeneration > 1
					if c.Type == v1beta1.ConditionFieldsOwned && c.Status != metav1.ConditionFalse ||
						c.Type == v1beta1.ConditionApplied && c.Status == metav1.ConditionTrue && told && f.on.Load() ||
						c.Type == v1beta1.ConditionReady && c.Status != metav1.ConditionFalse {
						lied = append(lied, fmt.Sprintf("%s is %s", c.Type, c.Status))
					}
				}
			}
		}()
		seize(t, o, "")
		o.rest()
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.Args = []string{"x"} })
		<-time.After(time.Minute)
		o.rest()
		watching.Stop()
		<-stopped
		if len(lied) > 0 {
			t.Errorf("while nothing was written: %q", lied)
		}
		f.on.Store(false)
		<-time.After(apply.LongestWait)
		o.rest()
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s after the API server has answered", status)
		}
		told := slices.DeleteFunc(o.events.heard(), func(event string) bool { return strings.Contains(event, "Warning Retrying") })
		if len(told) > 0 {
			t.Errorf("events %q", told)
		}
	})
}
