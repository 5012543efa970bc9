// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A conflict about a field that no pod has anything to do with keeps an MCPServer from being Ready as well: what its spec
// asks for is not there.
func TestReadyIsBoundToAllWrites(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "mcp-web-proxy", func(service *corev1.Service) { service.Spec.Selector["app"] = "theirs" })
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionReady)
		if status != metav1.ConditionFalse || reason != "FieldManagerConflict" || !strings.Contains(message, "FieldsOwned") {
			t.Errorf("Ready is %s because of %s: %s", status, reason, message)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionRolledOut); status != metav1.ConditionTrue {
			t.Errorf("RolledOut is %s because of %s; the pods are as they should be", status, reason)
		}
	})
}

// A pod that two PodDisruptionBudgets select cannot be evicted: the API server answers 500 to that. The rollout waits, says
// for what, and goes on when one of them is gone; the MCPServer, which serves, has not failed.
func TestTwoBudgetsHoldUpARollout(t *testing.T) {
	web := newServer("web")
	web.Annotations = map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete"}
	operate(t, []runtime.Object{web}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var mu sync.Mutex
		var evictions []time.Time
		var allowed atomic.Bool
		o.arriving.set(func(r *apiserver.Request) error {
			if r.Subresource != "eviction" {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			evictions = append(evictions, time.Now())
			if !allowed.Load() {
				return apierrors.FromObject(&metav1.Status{
					Status: metav1.StatusFailure, Code: 500,
					Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
				})
			}
			return nil
		})
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.UpdateRevision = "2" })
		for range 60 {
			<-time.After(time.Minute)
			o.queue.Add(key("web"))
		}
		o.rest()
		mu.Lock()
		tries := len(evictions)
		mu.Unlock()
		if tries < 5 || tries > 20 {
			t.Errorf("%d evictions in an hour", tries)
		}
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhasePending {
			t.Errorf("phase %s", phase)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionReconciling)
		if status != metav1.ConditionTrue || reason != "DisruptionBudget" || !strings.Contains(message, "more than one PodDisruptionBudget") {
			t.Errorf("Reconciling is %s because of %s: %s", status, reason, message)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionTrue {
			t.Errorf("Applied is %s because of %s", status, reason)
		}
		allowed.Store(true)
		<-time.After(apply.LongestWait)
		o.rest()
		mu.Lock()
		defer mu.Unlock()
		if len(evictions) != tries+1 {
			t.Errorf("%d evictions after one of the budgets is gone", len(evictions)-tries)
		}
	})
}

// An API server that answers that a pod is gone, which is there, may lag. The pod is evicted later, although nothing happens.
func TestPodThatIsSaidToBeGoneIsEvictedLater(t *testing.T) {
	web := newServer("web")
	web.Annotations = map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete"}
	operate(t, []runtime.Object{web}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var evictions atomic.Int32
		o.arriving.set(func(r *apiserver.Request) error {
			if r.Subresource == "eviction" && evictions.Add(1) == 1 {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, r.Name)
			}
			return nil
		})
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.UpdateRevision = "2" })
		<-time.After(apply.LongestWait)
		o.rest()
		if n := evictions.Load(); n != 2 {
			t.Errorf("%d evictions, want one that failed and one that did not", n)
		}
	})
}

// What is decided without a request, that an object is somebody else's or was written from a newer view, is counted: when it
// is found out, and each time that it is looked at again.
func TestRefusalsWithoutARequestAreCounted(t *testing.T) {
	seen := &outcomes{}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mcp-web-proxy", Namespace: "shop"}}
	operate(t, []runtime.Object{newServer("web"), foreign}, func(c *Config) { c.Observer = seen }, func(t *testing.T, o *operating) {
		if n := seen.refused("Service", apply.ClassForeign); n != 1 {
			t.Errorf("a foreign Service was counted %d times", n)
		}
		o.reads()
		<-time.After(time.Hour)
		o.rest()
		if n := seen.refused("Service", apply.ClassForeign); n < 6 || n > 12 {
			t.Errorf("a foreign Service was counted %d times in an hour", n)
		}
		o.expect(beforeTheBackend, "one refused creation tells it")
		if n := len(o.reads()); n < 6 || n > 16 {
			t.Errorf("it was read %d times in an hour", n)
		}
	})
}

// An older view that is held back is told and counted, and does not write.
func TestOlderViewIsTold(t *testing.T) {
	seen := &outcomes{}
	operate(t, []runtime.Object{newServer("web")}, func(c *Config) { c.Observer = seen }, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.before.set(func(w write) error {
			if w.manager == managers.Finalizer { // The cache does not show what the API server has.
				return apierrors.NewConflict(schema.GroupResource{}, w.name, errors.New("the object has been modified"))
			}
			return nil
		})
		change(o.apiServer, "mcp-web-proxy", func(service *corev1.Service) {
			service.Annotations[v1beta1.AnnotationSource] = "server-web/999"
			service.Labels["app"] = "other"
		})
		<-time.After(time.Hour)
		o.rest()
		if n := seen.refused("Service", apply.ClassStale); n < 6 || n > 20 {
			t.Errorf("it was counted %d times in an hour", n)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionApplied)
		if status != metav1.ConditionFalse || reason != "NewerSource" || !strings.Contains(message, "server-web/999") {
			t.Errorf("Applied is %s because of %s: %s", status, reason, message)
		}
		if told := o.events.heard(); len(told) != 1 {
			t.Errorf("events %q, want one", told)
		}
	})
}

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
