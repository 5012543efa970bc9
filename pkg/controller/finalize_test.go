// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// markDeleted is what a user's delete does to an object with finalizers.
func markDeleted(s *apiServer, name string, more ...string) {
	s.t.Helper()
	change(s, name, func(server *v1beta1.MCPServer) {
		server.DeletionTimestamp = &metav1.Time{Time: bubbleStart}
		server.Finalizers = append(server.Finalizers, more...)
	})
}

// orphan takes the owner references from a child.
func orphan[L runtime.Object](s *apiServer, name string) {
	s.t.Helper()
	change(s, name, func(child L) { access(child).SetOwnerReferences(nil) })
}

// orphanAll takes the owner references from all children, as the garbage collector does when it is asked to.
func orphanAll(s *apiServer, name string) {
	s.t.Helper()
	for _, child := range inventory.Children() {
		object := child.Name(name)
		switch {
		case child == inventory.InlineAuthz:
			continue // None of the MCPServers asks for it.
		case child.ByContent:
			object = s.configNamed(object)
		}
		s.changeAt(s.api.KindOf(child.Kind.Group, child.Kind.Kind), "", "somebody", object, func(o runtime.Object) { access(o).SetOwnerReferences(nil) })
	}
}

func TestDeletionReleasesTheFinalizer(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		markDeleted(o.apiServer, "web")
		o.rest()
		o.mu.Lock()
		last := o.writes[len(o.writes)-1]
		o.mu.Unlock()
		o.expect([]string{"apply MCPServer/web freehold-finalizer"}, "a deletion")

		var body struct {
			Metadata map[string]any `json:"metadata"`
		}
		if err := json.Unmarshal(last.patch, &body); err != nil {
			t.Fatal(err)
		}
		if body.Metadata["uid"] != "server-web" || body.Metadata["resourceVersion"] == nil || body.Metadata["finalizers"] != nil {
			t.Errorf("released with %s, want uid and version and no finalizer", last.patch)
		}
		if _, ok := get[*v1beta1.MCPServer](o.apiServer, "web"); ok {
			t.Error("the MCPServer is still there")
		}
		// The garbage collector has the children.
		if _, ok := get[*appsv1.Deployment](o.apiServer, "web"); !ok {
			t.Error("a child with an owner reference was deleted by us")
		}
	})
}

// A finalizer of somebody else keeps the MCPServer, and is not ours to take.
func TestDeletionLeavesOtherFinalizers(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		theirs := toolhivev1beta1ac.MCPServer("web", "shop").WithFinalizers("example.com/theirs")
		if _, err := o.servers.ToolhiveV1beta1().MCPServers("shop").Apply(t.Context(), theirs, metav1.ApplyOptions{FieldManager: "team"}); err != nil {
			t.Fatal(err)
		}
		markDeleted(o.apiServer, "web")
		o.rest()
		if got := o.server("web").Finalizers; !slices.Equal(got, []string{"example.com/theirs"}) {
			t.Errorf("finalizers %v", got)
		}
		o.took()
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Labels = map[string]string{"a": "b"} })
		remove[*corev1.ConfigMap](o.apiServer, o.configNamed("web-runconfig"))
		o.rest()
		o.expect(nil, "events of an MCPServer that is none of ours any more")
	})
}

// Children that lost their owner reference are deleted by us, since nobody else would, each as it was seen.
func TestDeletionTakesChildrenWithoutAnOwner(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		// What comes back at once is not to be tried here: the controller is kept from writing.
		allow := o.forbidApplies()
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		orphan[*corev1.ConfigMap](o.apiServer, o.configNamed("web-runconfig"))
		o.rest()
		o.took()
		allow()
		o.after.set(func(write) error {
			// The answer to the write that ends the MCPServer tells an older version. It comes after the event, so that there is
			// no other look at it in between.
			<-time.After(time.Second)
			return nil
		})
		markDeleted(o.apiServer, "web")
		o.rest()
		got := o.took()
		// One that has its reference goes first, as the proof that the garbage collector did not take them all.
		want := []string{
			"apply MCPServer/web freehold-finalizer", "delete configmaps/web-runconfig", "delete deployments/web",
			"delete services/mcp-web-proxy",
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if len(got) > 0 && !strings.HasPrefix(got[len(got)-1], "apply MCPServer") {
			t.Errorf("the finalizer was released before the children were deleted: %v", got)
		}
		if len(got) > 0 && got[0] != "delete deployments/web" {
			t.Errorf("a child was deleted without the proof: %v", got)
		}
	})
}

// An MCPServer that is deleted without its children: the garbage collector takes the references, one by one, and then
// its own sign.
func TestDeletionThatOrphansLeavesChildren(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		markDeleted(o.apiServer, "web", metav1.FinalizerOrphanDependents)
		o.rest()
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		o.expect(nil, "the garbage collector is at work")

		orphanAll(o.apiServer, "web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Finalizers = []string{v1beta1.Finalizer} })
		o.rest()
		// While some caches show references that are gone in truth, deletes are tried in vain.
		o.took()
		if _, ok := get[*v1beta1.MCPServer](o.apiServer, "web"); ok {
			t.Error("the MCPServer is still there")
		}
		for _, there := range []bool{
			exists[*appsv1.Deployment](o.apiServer, "web"), exists[*appsv1.StatefulSet](o.apiServer, "web"),
			exists[*corev1.Service](o.apiServer, "mcp-web"), exists[*corev1.Service](o.apiServer, "mcp-web-proxy"),
			exists[*corev1.ConfigMap](o.apiServer, o.configNamed("web-runconfig")), exists[*corev1.ServiceAccount](o.apiServer, "web-sa"),
		} {
			if !there {
				t.Error("a child that was to stay is gone")
			}
		}
	})
}

// An MCPServer that is deleted after its children: those without a reference are ours to delete, and the finalizer
// stays until the garbage collector has had the others.
func TestDeletionInTheForegroundWaitsForTheGarbageCollector(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		o.before.set(func(w write) error {
			if w.verb == "apply" && w.kind == "Service" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
			}
			return nil
		})
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		o.took()
		markDeleted(o.apiServer, "web", metav1.FinalizerDeleteDependents)
		o.rest()
		o.expect([]string{"delete services/mcp-web-proxy"}, "the garbage collector is at work")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Finalizers = []string{v1beta1.Finalizer} })
		o.rest()
		o.expect([]string{"apply MCPServer/web freehold-finalizer"}, "the garbage collector has done its work")
	})
}

// As long as a child cannot be deleted the finalizer stays, or the child would be left behind.
func TestDeletionWaitsForItsChildren(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var allowed atomic.Bool
		o.before.set(func(w write) error {
			if !allowed.Load() {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
			}
			return nil
		})
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		o.took()
		markDeleted(o.apiServer, "web")
		o.rest()
		tried := o.took()
		if !slices.Contains(tried, "delete configmaps/web-runconfig") {
			t.Errorf("the child was not tried to be deleted: %v", tried)
		}
		for _, w := range tried {
			if w == "apply MCPServer/web freehold-finalizer" {
				t.Error("the finalizer was released, or tried to be")
			}
		}
		allowed.Store(true)
		<-time.After(maxBackoff)
		o.rest()
		if _, ok := get[*v1beta1.MCPServer](o.apiServer, "web"); ok {
			t.Error("the MCPServer is still there")
		}
		if _, ok := get[*corev1.Service](o.apiServer, "mcp-web-proxy"); ok {
			t.Error("the child is still there")
		}
	})
}

// Without the finalizer nothing is made that could be left behind, and the status tells why.
func TestWithoutTheFinalizerNoChildIsMade(t *testing.T) {
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		o.before.set(func(w write) error {
			if w.manager == "freehold-finalizer" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
			}
			return nil
		})
		o.add(newServer("web"))
		o.rest()
		got := o.took()
		if len(got) < 2 {
			t.Errorf("writes %v, want the finalizer more than once", got)
		}
		statuses := 0
		for _, w := range got {
			switch w {
			case "apply MCPServer/web freehold-finalizer":
			case "apply MCPServer/web/status freehold-status":
				statuses++
			default:
				t.Errorf("%s without a finalizer", w)
			}
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionApplied); statuses != 1 || status != metav1.ConditionFalse ||
			reason != "Forbidden" || !strings.HasPrefix(message, "mcpserver.toolhive.stacklok.dev/web: ") {
			t.Errorf("after %d writes of the status Applied is %s because of %s: %s", statuses, status, reason, message)
		}
	})
}

// What was remembered of an MCPServer does not outlive it: another one of its name gets everything.
func TestTheNextMCPServerOfANameGetsEverything(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.took()
		markDeleted(o.apiServer, "web")
		o.rest()
		remove[*corev1.ServiceAccount](o.apiServer, "web-proxy-runner")
		remove[*corev1.ServiceAccount](o.apiServer, "web-sa")
		o.rest()
		o.took()
		again := newServer("web")
		again.UID = "another"
		o.add(again)
		o.rest()
		// All of it is written again: what is new is created, and what is left gets another owner.
		o.expect(beforeTheBackend, "a second MCPServer of the name")
	})
}

func exists[L runtime.Object](s *apiServer, name string) bool {
	s.t.Helper()
	_, ok := get[L](s, name)
	return ok
}

// Children none of which has a reference stay, and nobody knows why: the operator was not there to see it. It says so, and how
// to delete them. A user who was seen to ask for it is not told.
func TestChildrenLeftBehindAreTold(t *testing.T) {
	for name, seen := range map[string]bool{"the operator was down": false, "the operator was there": true} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.events.heard()
				if seen {
					markDeleted(o.apiServer, "web", metav1.FinalizerOrphanDependents)
					o.rest()
				}
				o.before.set(func(w write) error {
					if w.verb == "apply" && w.kind != "MCPServer" {
						return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
					}
					return nil
				})
				orphanAll(o.apiServer, "web")
				o.rest()
				o.took()
				o.events.heard()
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
					server.DeletionTimestamp, server.Finalizers = &metav1.Time{Time: bubbleStart}, []string{v1beta1.Finalizer}
				})
				<-time.After(2 * maxBackoff)
				o.rest()
				for _, w := range o.took() {
					if w != "apply MCPServer/web freehold-finalizer" {
						t.Errorf("%s, although none of the children has a reference", w)
					}
				}
				if exists[*v1beta1.MCPServer](o.apiServer, "web") {
					t.Error("the MCPServer is still there")
				}
				told := slices.DeleteFunc(o.events.heard(), func(e string) bool { return !strings.Contains(e, "ChildrenLeftBehind") })
				switch {
				case seen && len(told) > 0:
					t.Errorf("told of what was asked for: %v", told)
				case !seen && (len(told) != 1 || !strings.Contains(told[0], "Warning") || !strings.Contains(told[0],
					"kubectl delete -n shop configmap/"+o.configNamed("web-runconfig")+" deployment.apps/web ") ||
					!strings.Contains(told[0], " role.rbac.authorization.k8s.io/web-proxy-runner ")):
					t.Errorf("told %v", told)
				}
			})
		})
	}
}

// An event has room for so many names. The log has all of them.
func TestChildrenLeftBehindFitIntoAnEvent(t *testing.T) {
	server := key(strings.Repeat("w", 63))
	event, command := leftBehind(server, append(observed.NamedChildren(server), inventory.RunConfig.Ref(server.Namespace, server.Name),
		inventory.InlineAuthz.Ref(server.Namespace, server.Name)))
	if len(event.Note) > 1024 || !strings.Contains(event.Note, " more objects, which the operator's log names)") {
		t.Errorf("told %v", event)
	}
	if !strings.HasSuffix(command, " statefulset.apps/"+server.Name) {
		t.Errorf("the log has %s", command)
	}
}

// What a predecessor left behind and was never taken in hand for this MCPServer is not deleted with it: it may have been
// asked to stay.
func TestDeletionLeavesWhatAPredecessorLeft(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.before.set(func(w write) error {
			if w.verb == "apply" && w.kind == "ConfigMap" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
			}
			return nil
		})
		change(o.apiServer, o.configNamed("web-runconfig"), func(child *corev1.ConfigMap) {
			child.OwnerReferences = nil
			child.Annotations["freehold.dev/source"] = "predecessor/3"
		})
		o.rest()
		o.took()
		o.events.heard()
		markDeleted(o.apiServer, "web")
		o.rest()
		o.expect([]string{"apply MCPServer/web freehold-finalizer"}, "a child of a predecessor")
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], "kubectl delete -n shop configmap/web-runconfig") {
			t.Errorf("told %v", told)
		}
	})
}
