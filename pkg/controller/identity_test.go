// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// meeting are MCPServers one of whose children has the name of one of a's.
var meeting = map[string]struct {
	name, service string
	transport     v1beta1.Transport
}{
	"proxy, HTTP":     {"a-proxy", "mcp-a-proxy", v1beta1.TransportStreamableHTTP},
	"proxy, stdio":    {"a-proxy", "mcp-a-proxy", v1beta1.TransportStdio},
	"headless, HTTP":  {"a-headless", "mcp-a-headless", v1beta1.TransportStreamableHTTP},
	"headless, stdio": {"a-headless", "mcp-a-headless", v1beta1.TransportStdio},
}

// writesOf are the writes of an object, with what tells for whom they were made.
type writesOf struct {
	mu     sync.Mutex
	writes []write
	refuse bool
}

func (w *writesOf) watch(o *operating, name string) {
	o.before.set(func(request write) error {
		if request.name != name {
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes = append(w.writes, request)
		if w.refuse {
			return apierrors.NewForbidden(schema.GroupResource{}, request.name, fmt.Errorf("not now"))
		}
		return nil
	})
}

func (w *writesOf) refuses(refuse bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = refuse
}

// forgetDeletes drops the deletes that were tried.
func (w *writesOf) forgetDeletes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = slices.DeleteFunc(w.writes, func(request write) bool { return request.verb == "delete" })
}

// check fails the test if somebody but the MCPServer has written, or tried to.
func (w *writesOf) check(t *testing.T, server string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.writes {
		if request.verb == "delete" || !bytes.Contains(request.patch, []byte(`"name":"`+server+`","uid":"server-`+server+`"`)) {
			t.Errorf("%s by another than %s: %s", request, server, request.patch)
		}
	}
}

// foreignTo is what an MCPServer tells of an object that is not its own.
func (o *operating) foreignTo(name string) string {
	_, reason, message := o.condition(name, v1beta1.ConditionFieldsOwned)
	if reason != "ObjectNotOurs" {
		return ""
	}
	return message
}

// A child that has the name of another MCPServer's stays with its own, also when it has lost its owner reference: it is not
// deleted by one that wants nothing of that name, nor adopted by one that does. That one tells whose it is.
func TestNamesThatMeetHarmNeither(t *testing.T) {
	for name, other := range meeting {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("a")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("a")
				wants := other.transport != v1beta1.TransportStdio
				tells := func(what string) {
					t.Helper()
					if told := o.foreignTo(other.name); wants != strings.Contains(told, what) || !wants && told != "" {
						t.Errorf("%s tells: %q", other.name, told)
					}
					if told := o.foreignTo("a"); told != "" {
						t.Errorf("a tells: %q", told)
					}
				}
				seen := &writesOf{}
				seen.watch(o, other.service)
				second := newServer(other.name)
				second.Spec.Transport = other.transport
				o.add(second)
				o.rest()
				tells("it belongs to MCPServer a: a child of each MCPServer has this name. Create one of the two again")

				seen.refuses(true)
				orphan[*corev1.Service](o.apiServer, other.service)
				o.rest()
				o.queue.Add(key(other.name))
				o.rest()
				seen.refuses(false)
				<-time.After(2 * maxBackoff)
				o.rest()
				seen.check(t, "a")
				service, _ := get[*corev1.Service](o.apiServer, other.service)
				if owner := metav1.GetControllerOf(service); owner == nil || owner.Name != "a" {
					t.Errorf("after it was lost it belongs to %v", owner)
				}

				markDeleted(o.apiServer, "a", metav1.FinalizerOrphanDependents)
				o.rest()
				orphanAll(o.apiServer, "a")
				change(o.apiServer, "a", func(server *v1beta1.MCPServer) { server.Finalizers = []string{v1beta1.Finalizer} })
				o.rest()
				if exists[*v1beta1.MCPServer](o.apiServer, "a") || !exists[*corev1.Service](o.apiServer, other.service) {
					t.Error("a is there, or its Service is not")
				}
				// While some caches show references that are gone in truth, a itself tries deletes in vain.
				seen.forgetDeletes()
				seen.check(t, "a")
				if told := o.foreignTo(other.name); wants != strings.Contains(told,
					"MCPServer a, since deleted, left it behind. If it is no longer needed: kubectl delete -n shop service/"+other.service) {
					t.Errorf("%s tells: %q", other.name, told)
				}
				o.before.set(nil)
				remove[*corev1.Service](o.apiServer, other.service)
				o.rest()
				service, ok := get[*corev1.Service](o.apiServer, other.service)
				if ok != wants || ok && metav1.GetControllerOf(service).Name != other.name || o.foreignTo(other.name) != "" {
					t.Errorf("once its name is free: %v, and %s tells %q", service, other.name, o.foreignTo(other.name))
				}
			})
		})
	}
}

// The one that comes first has the name, whichever of the two it is.
func TestNamesThatMeetGoToTheFirst(t *testing.T) {
	operate(t, []runtime.Object{newServer("a-proxy")}, nil, func(t *testing.T, o *operating) {
		seen := &writesOf{}
		seen.watch(o, "mcp-a-proxy")
		o.add(newServer("a"))
		o.rest()
		if told := o.foreignTo("a"); !strings.Contains(told, "service/mcp-a-proxy: it belongs to MCPServer a-proxy") {
			t.Errorf("a tells: %q", told)
		}
		markDeleted(o.apiServer, "a")
		o.rest()
		seen.check(t, "a-proxy")
		if exists[*v1beta1.MCPServer](o.apiServer, "a") || o.foreignTo("a-proxy") != "" {
			t.Error("a is there, or a-proxy was harmed")
		}
	})
}

// An MCPServer tells anew of what another one has left behind when that one is gone, although nothing happens to the object.
func TestNeighboursAreWoken(t *testing.T) {
	operate(t, []runtime.Object{newServer("a")}, nil, func(t *testing.T, o *operating) {
		o.add(newServer("a-proxy"))
		o.rest()
		markDeleted(o.apiServer, "a")
		o.rest()
		// Nobody collects garbage here, so the Service still has its owner.
		if told := o.foreignTo("a-proxy"); !strings.Contains(told, "MCPServer a, since deleted") {
			t.Errorf("a-proxy tells: %q", told)
		}
	})
}

// restore makes a child anew as a tool does that restores backups: without managedFields, and without owner references.
func restore[L runtime.Object](o *operating, name string) {
	o.t.Helper()
	found, ok := get[L](o.apiServer, name)
	if !ok {
		o.t.Fatalf("there is no %T %s", found, name)
	}
	remove[L](o.apiServer, name)
	restored := found.DeepCopyObject().(L)
	access(restored).SetUID("")
	access(restored).SetManagedFields(nil)
	access(restored).SetOwnerReferences(nil)
	o.add(restored)
}

// A child that has lost managedFields and owner references at once is known by its source: it gets both back.
func TestRestoredChildIsOurs(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		allow := o.forbidApplies()
		restore[*corev1.Service](o, "mcp-web-proxy")
		restore[*corev1.ConfigMap](o, o.configNamed("web-runconfig"))
		restore[*appsv1.Deployment](o, "web")
		allow()
		<-time.After(2 * maxBackoff)
		o.rest()
		for name, child := range map[string]metav1.Object{
			"freehold-service": found[*corev1.Service](o, "mcp-web-proxy"), "freehold-runconfig": found[*corev1.ConfigMap](o, o.configNamed("web-runconfig")),
			"freehold-proxy": found[*appsv1.Deployment](o, "web"),
		} {
			owned := slices.ContainsFunc(child.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == name })
			if !metav1.IsControlledBy(child, o.server("web")) || !owned {
				t.Errorf("%s: owners %v, entries %v", name, child.GetOwnerReferences(), child.GetManagedFields())
			}
		}
		if told := o.foreignTo("web"); told != "" {
			t.Error(told)
		}
	})
}

func found[L runtime.Object](o *operating, name string) metav1.Object {
	o.t.Helper()
	child, ok := get[L](o.apiServer, name)
	if !ok {
		o.t.Fatalf("there is no %T %s", child, name)
	}
	return access(child)
}

// What one MCPServer is told of an object does not make the other one forget what it knows: its conflict costs no requests.
func TestNamesThatMeetAreRememberedApart(t *testing.T) {
	operate(t, []runtime.Object{newServer("a")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("a")
		o.add(newServer("a-proxy"))
		o.rest()
		o.add(newServer("a-proxy-proxy"))
		o.rest()
		change(o.apiServer, "mcp-a-proxy", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "theirs"} })
		o.rest()
		if _, reason, _ := o.condition("a", v1beta1.ConditionFieldsOwned); reason != "FieldManagerConflict" {
			t.Fatalf("a tells of %s", reason)
		}
		o.took()
		for range 3 {
			for _, name := range []string{"a-proxy", "a", "a-proxy-proxy"} {
				o.queue.Add(key(name))
				o.rest()
			}
		}
		o.expect(nil, "looks at a conflict that stands, and at an object of another")
		if standing := o.applier.Conflicts(); len(standing) != 1 {
			t.Errorf("%d conflicts are known after passes over the neighbours, want that of a", len(standing))
		}
		if !strings.Contains(o.foreignTo("a-proxy"), "MCPServer a:") || !strings.Contains(o.foreignTo("a-proxy-proxy"), "MCPServer a-proxy:") {
			t.Errorf("a-proxy tells %q, a-proxy-proxy %q", o.foreignTo("a-proxy"), o.foreignTo("a-proxy-proxy"))
		}
		// One that goes forgets nothing of the other's.
		markDeleted(o.apiServer, "a-proxy-proxy")
		markDeleted(o.apiServer, "a-proxy")
		o.rest()
		o.took()
		o.queue.Add(key("a"))
		o.rest()
		o.expect(nil, "a conflict that stands, when the other one is gone")
	})
}

// The waits of a write that the API server refuses grow, however often another MCPServer is looked at that has a child of the name.
func TestNamesThatMeetWaitApart(t *testing.T) {
	for name, test := range map[string]struct {
		other string
		// begin has the writes of a's child refused.
		begin func(o *operating, other *v1beta1.MCPServer, refuse func())
	}{
		"an edit": {"a-proxy", func(o *operating, other *v1beta1.MCPServer, refuse func()) {
			o.add(newServer("a"))
			o.rest()
			o.becomeReady("a")
			o.add(other)
			o.rest()
			refuse()
			change(o.apiServer, "a", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9090 })
		}},
		"a creation": {"a-proxy", func(o *operating, other *v1beta1.MCPServer, refuse func()) {
			refuse()
			o.add(newServer("a"))
			o.add(other)
		}},
		"a creation that the other does not want": {"a-headless", func(o *operating, other *v1beta1.MCPServer, refuse func()) {
			refuse()
			other.Spec.Transport = v1beta1.TransportStdio
			o.add(newServer("a"))
			o.add(other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, nil, nil, func(t *testing.T, o *operating) {
				seen := &writesOf{refuse: true}
				test.begin(o, newServer(test.other), func() { seen.watch(o, "mcp-"+test.other) })
				for i := range 60 {
					<-time.After(10 * time.Second)
					change(o.apiServer, test.other, func(server *v1beta1.MCPServer) { server.Spec.MCPPort = int32(2000 + i) })
				}
				o.rest()
				seen.mu.Lock()
				defer seen.mu.Unlock()
				tries := 0
				for _, request := range seen.writes {
					if bytes.Contains(request.patch, []byte(`"name":"a","uid":"server-a"`)) {
						tries++
					}
				}
				const most = 30 // 0.2 s, doubled each time, makes twelve in ten minutes.
				if tries > most {
					t.Errorf("%d refused writes for a in ten minutes, want %d at most", tries, most)
				}
			})
		})
	}
}
