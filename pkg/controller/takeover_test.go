// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/turns"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// entry is one of ToolHive's.
func entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	e.FieldsV1.SetRawBytes([]byte(fields))
	return e
}

const ofGeneration = `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:` + v1beta1.AnnotationGeneration + `":{}}}}}}`

// byToolHive is an MCPServer with its workloads, as ToolHive makes them, and a pod of its proxy. The gate is what keeps
// proxyrunners of a lower generation from writing to the backend.
func byToolHive(name, gate string) []runtime.Object {
	server := newServer(name)
	server.Finalizers = []string{v1beta1.Finalizer}
	server.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, v1beta1.SchemeGroupVersion.String(),
			`{"f:metadata":{"f:finalizers":{".":{},"v:\"`+v1beta1.Finalizer+`\"":{}}}}`),
	}
	yes := true
	owner := metav1.OwnerReference{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.MCPServerKind, Name: name, UID: server.UID, Controller: &yes,
	}
	generation := map[string]string{v1beta1.AnnotationGeneration: gate}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID("deployment-" + name), OwnerReferences: []metav1.OwnerReference{owner},
		Labels: render.ProxySelector(name),
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, "apps/v1", ofGeneration),
		},
	}}
	deployment.Spec.Template.Annotations = generation
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", Labels: render.BackendLabels(server), Generation: 1,
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry(managers.ToolHiveRunner, metav1.ManagedFieldsOperationApply, "apps/v1", ofGeneration),
		},
	}}
	set.Spec.Template.Annotations = generation
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1}
	return []runtime.Object{server, deployment, set, proxySet(name, deployment.UID), oldProxyPod(name)}
}

func oldProxyPod(name string) *corev1.Pod {
	pod := proxyPod(name, render.ProxySelector(name))
	pod.Annotations = map[string]string{v1beta1.AnnotationGeneration: "1"}
	return pod
}

// replaceProxy lets the pod of ToolHive's proxy go, as a rollout does.
func (o *operating) replaceProxy(name string) {
	o.t.Helper()
	remove[*corev1.Pod](o.apiServer, oldProxyPod(name).Name)
	o.rest()
}

// taken tells which of the two workloads have an entry of our own, and none of ToolHive's.
func (o *operating) taken(name string) []string {
	o.t.Helper()
	var found []string
	deployment, _ := get[*appsv1.Deployment](o.apiServer, name)
	set, _ := get[*appsv1.StatefulSet](o.apiServer, name)
	for writer, obj := range map[string]metav1.Object{managers.Proxy: deployment, managers.Backend: set} {
		if ownership.ApplyEntry(obj, writer, "") != nil && !takeover.Held(obj, "") {
			found = append(found, writer)
		}
	}
	slices.Sort(found)
	return found
}

// A backend whose gate keeps old runners out of it is taken when no old proxy is left, not even one on its way out;
// another one first, so that it is closed. The proxy waits for its rollout.
func TestATakeoverKeepsOldRunnersOut(t *testing.T) {
	operate(t, byToolHive("web", "2"), nil, func(t *testing.T, o *operating) {
		if got := o.taken("web"); !slices.Equal(got, []string{managers.Proxy}) {
			t.Errorf("with a closed gate %v were taken, want the proxy alone", got)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionTakenOver)
		if status != metav1.ConditionFalse || reason != "TakingOver" || !strings.Contains(message, "rollout of the proxy") {
			t.Errorf("TakenOver is %s because of %s: %s", status, reason, message)
		}
		o.replaceProxy("web")
		if got := o.taken("web"); len(got) != 2 {
			t.Errorf("%v were taken, want both", got)
		}
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		if gate := set.Spec.Template.Annotations[v1beta1.AnnotationGeneration]; set.Generation != 1 && gate == "" {
			t.Errorf("the gate is %q", gate)
		}
	})
	for _, gate := range []string{"1", "0", "", "none"} {
		operate(t, byToolHive("web", gate), nil, func(t *testing.T, o *operating) {
			if got := o.taken("web"); !slices.Equal(got, []string{managers.Backend}) {
				t.Errorf("gate %q: %v were taken, want the backend alone", gate, got)
			}
			backendReady(o.apiServer, "web")
			o.addBackendPod(o.server("web"), "second")
			o.rest()
			if got := o.taken("web"); len(got) != 2 {
				t.Errorf("gate %q: %v were taken, want both", gate, got)
			}
			o.replaceProxy("web")
			if status, reason, _ := o.condition("web", v1beta1.ConditionTakenOver); status != metav1.ConditionTrue {
				t.Errorf("gate %q: TakenOver is %s because of %s", gate, status, reason)
			}
		})
	}
}

// crew are MCPServers that ToolHive has made.
func crew(count int) (objects []runtime.Object, names []string) {
	for i := range count {
		names = append(names, fmt.Sprint("web-", i))
		objects = append(objects, byToolHive(names[i], "2")...)
	}
	return objects, names
}

// begun are those of the MCPServers of which anything was taken.
func (s *apiServer) begun(names []string) (begun []string) {
	s.t.Helper()
	for _, name := range names {
		server, there := get[*v1beta1.MCPServer](s, name)
		if there && ownership.ApplyEntry(server, managers.Finalizer, "") != nil {
			begun = append(begun, name)
		}
	}
	return begun
}

func (o *operating) expectTakeovers(why string, want turns.Counts) {
	o.t.Helper()
	if got := o.Takeovers(); got != want {
		o.t.Errorf("%s: %+v, want %+v", why, got, want)
	}
}

func atOnce(count int) func(*Config) {
	return func(c *Config) { c.TakeoversAtOnce = count }
}

// As many are taken over at a time as may be, and each makes room for one when it is done.
func TestTakeoversMakeRoom(t *testing.T) {
	objects, names := crew(4)
	operate(t, objects, atOnce(2), func(t *testing.T, o *operating) {
		for left := 4; left > 0; left-- {
			o.expectTakeovers("some are left", turns.Counts{Active: min(left, 2), Waiting: max(left-2, 0)})
			begun := o.begun(names)
			if want := min(4-left+2, 4); len(begun) != want {
				t.Fatalf("%v were begun, want %d", begun, want)
			}
			for _, name := range begun {
				if len(o.taken(name)) < 2 {
					o.replaceProxy(name)
					break
				}
			}
		}
		o.expectTakeovers("all are done", turns.Counts{})
	})
}

// What will pass by itself makes no room: the rest of the takeover comes at once, and would be one too many.
func TestTakeoverHeldUpForAMomentKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, names := crew(4)
		s := newAPIServer(t, objects...)
		var mu sync.Mutex // There are several workers.
		most, refused := 0, 0
		s.before.set(func(w write) error {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, len(s.begun(names)))
			if w.kind != managers.Deployment.Kind {
				return nil
			}
			refused++
			return apierrors.NewConflict(deployments, w.name, fmt.Errorf("the object has been modified"))
		})
		o := start(t, s, atOnce(2))
		defer o.end()
		<-time.After(time.Minute)
		o.rest()
		if most != 2 || refused < 4 {
			t.Errorf("%d were begun at a time, want 2; %d writes were refused", most, refused)
		}
	})
}

// What waits for a human makes room for others.
func TestTakeoverHeldUpMakesRoom(t *testing.T) {
	objects, names := crew(3)
	for why, refusal := range map[string]error{
		"admission":  apierrors.NewForbidden(deployments, names[0], fmt.Errorf("no")),
		"validation": apierrors.NewInvalid(managers.Deployment, names[0], nil),
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				for _, obj := range objects {
					s.add(obj.DeepCopyObject())
				}
				s.before.set(func(w write) error {
					if w.kind == managers.Deployment.Kind && w.name == names[0] {
						return refusal
					}
					return nil
				})
				o := start(t, s, atOnce(1))
				defer o.end()
				o.rest()
				for range names {
					for _, name := range o.begun(names) {
						if _, there := get[*corev1.Pod](o.apiServer, oldProxyPod(name).Name); there && name != names[0] {
							o.replaceProxy(name)
						}
					}
				}
				for _, name := range names[1:] {
					if status, reason, message := o.condition(name, v1beta1.ConditionTakenOver); status != metav1.ConditionTrue {
						t.Errorf("%s is held up by %s: %s %s", name, names[0], reason, message)
					}
				}
			})
		})
	}
}

// An MCPServer whose spec cannot be rendered any more, in the middle of its takeover, makes room for others too.
func TestTakeoverOfWhatBecameInvalidMakesRoom(t *testing.T) {
	objects, names := crew(2)
	operate(t, objects, atOnce(1), func(t *testing.T, o *operating) {
		begun := o.begun(names)
		if len(begun) != 1 {
			t.Fatalf("%v were begun, want one", begun)
		}
		change(o.apiServer, begun[0], makeUnrenderable)
		o.rest()
		if both := o.begun(names); len(both) != 2 {
			t.Errorf("%v were begun: the other one waits", both)
		}
	})
}

// Who was deleted makes room.
func TestTakeoverOfWhatIsGoneMakesRoom(t *testing.T) {
	objects, names := crew(2)
	operate(t, objects, atOnce(1), func(t *testing.T, o *operating) {
		begun := o.begun(names)
		remove[*v1beta1.MCPServer](o.apiServer, begun[0])
		o.rest()
		o.expectTakeovers("one is gone", turns.Counts{Active: 1})
		if o.takeovers.Holds(cache.NewObjectName("shop", begun[0])) {
			t.Error("the one that is gone still counts")
		}
	})
}

// gone lets a deleted MCPServer of ToolHive's be one that its children went before, but for the StatefulSet: that has no
// owner.
func gone(attached bool) []runtime.Object {
	objects := byToolHive("web", "2")
	server, deployment := access(objects[0]), access(objects[1])
	now := metav1.NewTime(bubbleStart)
	server.SetDeletionTimestamp(&now)
	if attached {
		return objects
	}
	deployment.SetOwnerReferences(nil)
	deployment.SetLabels(render.ProxySelector("web"))
	return objects
}

// ToolHive's StatefulSet has no owner, and goes with the MCPServer all the same; unless the children were asked to stay
// behind, which those show that have lost their reference.
func TestDeletionTakesWhatToolHiveMade(t *testing.T) {
	for why, c := range map[string]struct {
		objects []runtime.Object
		stays   bool
	}{
		"the children are there":       {objects: gone(true)},
		"the children have gone":       {objects: slices.Delete(gone(true), 1, 2)},
		"the children were to be kept": {objects: gone(false), stays: true},
	} {
		operate(t, c.objects, nil, func(t *testing.T, o *operating) {
			if exists[*v1beta1.MCPServer](o.apiServer, "web") {
				t.Errorf("%s: the MCPServer is still there", why)
			}
			if got := exists[*appsv1.StatefulSet](o.apiServer, "web"); got != c.stays {
				t.Errorf("%s: the StatefulSet is there: %t", why, got)
			}
		})
	}
}

// What ToolHive's operator writes to a child that Freehold has taken over is reported although Freehold wants no other value of it, as
// such an MCPServer's status stays ToolHive's; and the command in the message ends that.
func TestWritesOfToolHiveAreReportedWithoutAConflict(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.events.heard()
		theirs := map[string]string{"toolhive.stacklok.dev/theirs": "1"}
		changeAs(o.apiServer, "", managers.ToolHiveOperator, "web", func(d *appsv1.Deployment) { d.Annotations = merged(d.Annotations, theirs) })
		o.rest()
		changeAs(o.apiServer, "status", managers.ToolHiveOperator, "web", func(server *v1beta1.MCPServer) { server.Status.Message = "theirs" })
		o.rest()
		const way = "Stop ToolHive's operator, then take ownership: " +
			"kubectl annotate -n shop mcpserver.toolhive.stacklok.dev/web --overwrite 'freehold.dev/take=thv-operator'."
		_, _, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		o.expectCondition("after ToolHive wrote", v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, v1beta1.ReasonFieldManagerConflict)
		if !strings.Contains(message, way) || !strings.Contains(message, "deployment.apps/web") {
			t.Errorf("FieldsOwned says %s", message)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], managers.ToolHiveOperator) {
			t.Errorf("events %q, want one about ToolHive's operator", told)
		}
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "that is reported")

		o.annotate("web", v1beta1.AnnotationTake, managers.ToolHiveOperator)
		o.rest()
		o.expectCondition("once it is taken", v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, v1beta1.ReasonNoConflict)
		o.expectCondition("once it is taken", v1beta1.ConditionFieldsTaken, metav1.ConditionTrue, v1beta1.ReasonTaken)
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if takeover.Held(deployment, "") || deployment.Annotations["toolhive.stacklok.dev/theirs"] != "" {
			t.Errorf("ToolHive still owns a part of the Deployment, whose annotations are %v", deployment.Annotations)
		}
		if server := o.server("web"); takeover.Held(server, "status") || server.Status.Message == "theirs" {
			t.Errorf("ToolHive still owns a part of the status: %s", server.Status.Message)
		}
	})
}

func merged(before, more map[string]string) map[string]string {
	all := maps.Clone(before)
	maps.Copy(all, more)
	return all
}
