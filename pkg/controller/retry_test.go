// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// etcdError is an answer of etcd, as the API server hands it through.
func etcdError(message string) error {
	return apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: " + message})
}

var statefulSets = schema.GroupResource{Group: "apps", Resource: "statefulsets"}

// A write that failed for a reason of the moment is made again, after a wait that grows, and the others are not.
func TestTransientRefusalsAreRetried(t *testing.T) {
	for name, refusal := range map[string]error{
		"overload":          apierrors.NewServiceUnavailable("later"),
		"a broken network":  fmt.Errorf("connection reset by peer"),
		"a missing right":   apierrors.NewForbidden(statefulSets, "web", fmt.Errorf("no")),
		"a change meantime": apierrors.NewConflict(statefulSets, "web", fmt.Errorf("the object has been modified")),
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, nil, nil, func(t *testing.T, o *operating) {
				var tries []time.Time
				o.before.set(func(w write) error {
					if w.kind != "StatefulSet" {
						return nil
					}
					tries = append(tries, time.Now())
					if len(tries) < 8 {
						return refusal
					}
					return nil
				})
				o.add(newServer("web"))
				<-time.After(3 * time.Minute)
				o.rest()
				if len(tries) != 8 {
					t.Fatalf("%d tries, want 8", len(tries))
				}
				// The events of the other writes may bring some looks about at the beginning.
				for i := 5; i < len(tries); i++ {
					if tries[i].Sub(tries[i-1]) <= tries[i-1].Sub(tries[i-2]) {
						t.Errorf("tries at %v: the waits do not grow", tries)
					}
				}
				written := map[string]int{}
				for _, w := range o.took() {
					written[w]++
				}
				for _, w := range beforeTheBackend {
					want := 1
					switch w {
					case "apply StatefulSet/web freehold-backend":
						want = 8
					case "apply MCPServer/web/status freehold-status":
						continue
					}
					if written[w] != want {
						t.Errorf("%s was sent %d times, want %d", w, written[w], want)
					}
				}
			})
		})
	}
}

// A body that the API server cannot take is sent seldom, told once, and sent again at once after a change.
func TestTerminalRefusalsAreRetriedSeldom(t *testing.T) {
	unappliable := apierrors.FromObject(&metav1.Status{
		Status: metav1.StatusFailure, Code: 500,
		Message: "failed to create typed patch object (shop/web; apps/v1, Kind=StatefulSet): .spec: duplicate entries for key [name=\"A\"]",
	})
	operate(t, nil, func(c *Config) { c.Resync = time.Minute }, func(t *testing.T, o *operating) {
		var tries atomic.Int32
		var mended atomic.Bool
		o.before.set(func(w write) error {
			if w.kind != "StatefulSet" {
				return nil
			}
			if tries.Add(1); mended.Load() {
				return nil
			}
			return unappliable
		})
		o.add(newServer("web"))
		<-time.After(10 * time.Minute)
		o.rest()
		if n := tries.Load(); n != 4 {
			t.Errorf("%d tries in ten minutes, want 4", n)
		}
		<-time.After(time.Hour)
		o.rest()
		if n := tries.Load(); n > 11 {
			t.Errorf("%d tries in an hour more", n)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionFalse || reason != "Unappliable" {
			t.Errorf("Applied is %s because of %s", status, reason)
		}
		if told := o.events.heard(); len(told) != 1 {
			t.Errorf("events %q, want one", told)
		}
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhaseFailed {
			t.Errorf("phase %s", phase)
		}
		mended.Store(true)
		tries.Store(0)
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = []string{"x"} })
		o.rest()
		if n := tries.Load(); n != 1 {
			t.Errorf("%d tries after a change, want 1", n)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionTrue {
			t.Errorf("Applied is %s after it was mended", status)
		}
	})
}

// What cannot be rendered leaves the last good state, costs a status, and nothing more until it is mended.
func TestInvalidSpecLeavesTheLastGoodState(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, func(c *Config) { c.Resync = time.Minute }, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		before, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			server.Spec.Args = []string{"x"}
			server.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":"none"}}`)}
		})
		<-time.After(10 * time.Minute)
		o.rest()
		o.expect([]string{"apply MCPServer/web/status freehold-status"}, "a pod template that is none")
		after, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the backend changed (-before +after):\n%s", diff)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionPodTemplateValid); status != metav1.ConditionFalse {
			t.Errorf("PodTemplateValid is %s because of %s", status, reason)
		}
		if told := o.events.heard(); len(told) != 1 {
			t.Errorf("events %q, want one", told)
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.PodTemplateSpec = nil })
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply StatefulSet/web freehold-backend") {
			t.Errorf("writes %v after it was mended", got)
		}
		backendReady(o.apiServer, "web")
		proxyReady(o.apiServer, "web")
		o.rest()
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhaseReady {
			t.Errorf("phase %s after it was mended", phase)
		}
	})
}

// A cache that does not show our own last write yet is not acted upon: it would look as if somebody else had
// undone it.
func TestNothingIsDoneUntilTheCacheShowsOurWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		o := start(t, s, nil)
		defer o.end()
		o.rest()
		o.becomeReady("web")

		s.hold("statefulsets", true)
		change(s, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = []string{"1"} })
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply StatefulSet/web freehold-backend") {
			t.Fatalf("writes %v after an edit", got)
		}
		change(s, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = []string{"2"} })
		<-time.After(time.Minute)
		o.rest()
		o.expect(nil, "the cache does not show the first write yet")

		s.hold("statefulsets", false)
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply StatefulSet/web freehold-backend") {
			t.Errorf("writes %v after the cache caught up", got)
		}
		set, _ := get[*appsv1.StatefulSet](s, "web")
		if args := set.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{"2"}) {
			t.Errorf("args %v", args)
		}
	})
}

// Only the namespaces that were asked for are looked at.
func TestOnlyTheNamespacesAskedForAreLookedAt(t *testing.T) {
	elsewhere, nowhere := newServer("web"), newServer("web")
	elsewhere.Namespace, elsewhere.UID = "market", "elsewhere"
	nowhere.Namespace, nowhere.UID = "attic", "nowhere"
	watch := func(c *Config) { c.Namespaces = []string{"shop", "market"} }
	operate(t, []runtime.Object{newServer("web"), elsewhere, nowhere}, watch, func(t *testing.T, o *operating) {
		for namespace, want := range map[string]bool{"shop": true, "market": true, "attic": false} {
			if _, there := o.api.Get(o.kindOf(&appsv1.StatefulSet{}), namespace, "web"); there != want {
				t.Errorf("namespace %s has a backend: %t, want %t", namespace, there, want)
			}
		}
		for _, r := range o.requested() {
			if r.Namespace != "shop" && r.Namespace != "market" {
				t.Errorf("%s in namespace %q", r, r.Namespace)
			}
		}
		if o.caches.Server(key("web")) == nil || o.caches.Scope("attic") != nil {
			t.Error("the caches are not those of the namespaces")
		}
	})
}

// Two transports want different Services. What an earlier one had is deleted as it was seen, and comes back.
func TestServicesOfAnEarlierTransportAreDeleted(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
		o.rest()
		got := o.took()
		for _, w := range got {
			if strings.HasPrefix(w, "delete services/") {
				t.Errorf("%s while a proxy of the earlier transport runs", w)
			}
		}
		remove[*corev1.Pod](o.apiServer, "web-5d8f9-x2x4z")
		proxyReady(o.apiServer, "web")
		o.rest()
		got = o.took()
		for _, want := range []string{"delete services/mcp-web-headless", "delete services/mcp-web"} {
			if n := len(slices.DeleteFunc(slices.Clone(got), func(w string) bool { return w != want })); n != 1 {
				t.Errorf("%s was sent %d times, want once", want, n)
			}
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportSSE })
		o.rest()
		got = o.took()
		for _, want := range []string{"apply Service/mcp-web-headless freehold-service", "apply Service/mcp-web freehold-service"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s was not sent, but %v", want, got)
			}
		}
	})
}

// A deletion that is refused is tried again.
func TestPruningIsRetried(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*corev1.Pod](o.apiServer, "web-5d8f9-x2x4z")
		tries := 0
		o.before.set(func(w write) error {
			if w.verb != "delete" {
				return nil
			}
			if tries++; tries < 4 {
				return context.DeadlineExceeded
			}
			return nil
		})
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
		o.rest()
		proxyReady(o.apiServer, "web")
		<-time.After(time.Minute)
		o.rest()
		if _, there := get[*corev1.Service](o.apiServer, "mcp-web"); there || tries < 5 {
			t.Errorf("the Service is there: %t, after %d tries", there, tries)
		}
	})
}

// The number of replicas of a workload is not written before the workload: by itself it would make a broken one.
func TestReplicasWaitForTheirWorkload(t *testing.T) {
	server := newServer("web")
	server.Spec.BackendReplicas = new(int32(2))
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		var allowed atomic.Bool
		o.before.set(func(w write) error {
			if !allowed.Load() && w.manager == "freehold-backend" {
				return apierrors.NewForbidden(statefulSets, "web", fmt.Errorf("no"))
			}
			return nil
		})
		o.add(server)
		o.rest()
		const replicas = "apply StatefulSet/web freehold-backend-replicas"
		if got := o.took(); slices.Contains(got, replicas) {
			t.Errorf("writes %v without a workload", got)
		}
		allowed.Store(true)
		<-time.After(time.Minute)
		o.rest()
		if got := o.took(); !slices.Contains(got, replicas) {
			t.Errorf("writes %v with a workload", got)
		}
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		if set.Spec.Replicas == nil || *set.Spec.Replicas != 2 {
			t.Errorf("replicas %v, want 2", set.Spec.Replicas)
		}
	})
}
