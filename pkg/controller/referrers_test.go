// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
)

// referTo makes an MCPServer refer to the config.
func referTo(server *v1beta1.MCPServer) *v1beta1.MCPServer {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "idp", Audience: "web"}
	return server
}

// inGroup makes an MCPServer a member of a group.
func inGroup(server *v1beta1.MCPServer, group string) *v1beta1.MCPServer {
	server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: group}
	return server
}

// forgo deletes an object that Freehold only counts.
func forgo(t *testing.T, client *dynamicfake.FakeDynamicClient, kind, name string) {
	t.Helper()
	for resource, of := range configcontroller.Referrers() {
		if of != kind {
			continue
		}
		if err := client.Resource(resource).Namespace("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func ref(name string) map[string]any { return map[string]any{"name": name} }

// A config that is deleted waits for what refers to it, says so once, and goes at the event of the last that ceases to. Nothing is
// asked for meanwhile.
func TestDeletionWaitsForReferrers(t *testing.T) {
	client, with := counting(other("VirtualMCPServer", "front", map[string]any{"incomingAuth": map[string]any{"oidcConfigRef": ref("idp")}}))
	objects := []runtime.Object{newIDP(), referTo(newServer("web")), referTo(newServer("api"))}
	operate(t, objects, with, func(t *testing.T, o *operating) {
		o.took()
		o.heardOf("idp")
		client.ClearActions()
		terminate[*v1beta1.MCPOIDCConfig](o.apiServer, "idp")
		o.rest()
		checkWrites(t, "of a deletion that waits", o.tookOn(), oidcStatusWrite)
		blocked := meta.FindStatusCondition(o.idp().Status.Conditions, v1beta1.ConditionDeletionBlocked)
		const message = "Cannot delete: referenced by workloads: [{MCPServer api} {MCPServer web} {VirtualMCPServer front}]"
		if blocked == nil || blocked.Status != metav1.ConditionTrue || blocked.Reason != v1beta1.ReasonReferencedByWorkloads || unworded(blocked.Message) != message {
			t.Errorf("condition %+v", blocked)
		}
		if diff := cmp.Diff([]string{"shop/idp Warning DeletionBlocked Delete: " + message}, o.heardOf("idp")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		<-time.After(time.Hour)
		checkWrites(t, "meanwhile", o.tookOn())
		if n := len(client.Actions()); n != 0 {
			t.Errorf("%d requests although referrers are known", n)
		}

		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.OIDCConfigRef = nil })
		o.rest()
		checkWrites(t, "after one has ceased to", o.tookOn(), oidcStatusWrite)
		terminate[*v1beta1.MCPServer](o.apiServer, "api") // Its finalizer holds it, but it renders nothing any more.
		o.rest()
		if c := meta.FindStatusCondition(o.idp().Status.Conditions, v1beta1.ConditionDeletionBlocked); !strings.HasSuffix(unworded(c.Message), "[{VirtualMCPServer front}]") {
			t.Errorf("condition %+v", c)
		}
		o.took()
		forgo(t, client, "VirtualMCPServer", "front")
		<-time.After(time.Second)
		if exists[*v1beta1.MCPOIDCConfig](o.apiServer, "idp") {
			t.Error("the config is there a second after its last referrer")
		}
		checkWrites(t, "of the release", o.tookOn(), oidcFinalizerWrite)
		if told := o.heardOf("idp"); len(told) != 0 {
			t.Errorf("events %q", told)
		}
	})
}

// A cache that does not show a referrer yet does not let a config go.
func TestReferrersAreListedBeforeTheRelease(t *testing.T) {
	client, with := counting()
	var shown atomic.Bool
	client.PrependReactor("list", "virtualmcpservers", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "VirtualMCPServer" + "List", "apiVersion": v1beta1.SchemeGroupVersion.String()}}
		list.SetResourceVersion("1")
		if shown.Load() { // not to the informer, which has listed before
			list.Items = append(list.Items, *other("VirtualMCPServer", "front", map[string]any{"incomingAuth": map[string]any{"oidcConfigRef": ref("idp")}}))
		}
		return true, list, nil
	})
	operate(t, []runtime.Object{newIDP()}, with, func(t *testing.T, o *operating) {
		shown.Store(true)
		terminate[*v1beta1.MCPOIDCConfig](o.apiServer, "idp")
		o.rest()
		if !meta.IsStatusConditionTrue(o.idp().Status.Conditions, v1beta1.ConditionDeletionBlocked) {
			t.Errorf("conditions %+v", o.idp().Status.Conditions)
		}
		// Of one that the caches never show no event tells.
		shown.Store(false)
		<-time.After(time.Minute)
		o.rest()
		if exists[*v1beta1.MCPOIDCConfig](o.apiServer, "idp") {
			t.Error("the config is still there")
		}
	})
}

// An API server that says "404 page not found" of the referrers that no cache shows yet does not let a config go.
func TestReferrersThatAreNotFoundMayBeThere(t *testing.T) {
	client, with := counting()
	var begun, found atomic.Bool
	client.PrependReactor("list", "virtualmcpservers", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "VirtualMCPServer" + "List", "apiVersion": v1beta1.SchemeGroupVersion.String()}}
		list.SetResourceVersion("1")
		if begun.Load() && !found.Load() {
			return true, nil, pageNotFound()
		}
		return true, list, nil
	})
	operate(t, []runtime.Object{newIDP()}, with, func(t *testing.T, o *operating) {
		o.discovering.set(func(*apiserver.Request) error { return pageNotFound() })
		begun.Store(true)
		terminate[*v1beta1.MCPOIDCConfig](o.apiServer, "idp")
		<-time.After(10 * time.Minute)
		if !exists[*v1beta1.MCPOIDCConfig](o.apiServer, "idp") {
			t.Error("the config is gone, and it is not known whether a VirtualMCPServer needs it")
		}
		found.Store(true)
		<-time.After(maxBackoff)
		if exists[*v1beta1.MCPOIDCConfig](o.apiServer, "idp") {
			t.Error("the config is still there, and nothing needs it")
		}
	})
}

// A group lists its members, of whichever kind, and follows them from one group to another. Its deletion waits for nobody.
func TestAGroupListsItsMembersOfAnyKind(t *testing.T) {
	client, with := counting(
		other("MCPRemoteProxy", "far", map[string]any{"groupRef": ref("team")}), other("MCPServerEntry", "aside", map[string]any{"groupRef": ref("team")}),
		other("VirtualMCPServer", "front", map[string]any{"groupRef": ref("team")}),
	)
	objects := []runtime.Object{newGroup("team"), newGroup("spare"), inGroup(newServer("web"), "team"), inGroup(newServer("api"), "team")}
	operate(t, objects, with, func(t *testing.T, o *operating) {
		of := func(name string) v1beta1.MCPGroupStatus {
			group, ok := get[*v1beta1.MCPGroup](o.apiServer, name)
			if !ok {
				t.Fatalf("there is no group %s", name)
			}
			group = group.DeepCopy()
			group.Status.Conditions = nil
			return group.Status
		}
		check := func(what, name string, want v1beta1.MCPGroupStatus) {
			t.Helper()
			want.Phase, want.ObservedGeneration = v1beta1.MCPGroupPhaseReady, 1
			if diff := cmp.Diff(want, of(name)); diff != "" {
				t.Errorf("status of %s %s (-want +got):\n%s", name, what, diff)
			}
		}
		team := v1beta1.MCPGroupStatus{
			Servers: []string{"api", "web"}, ServerCount: 2, RemoteProxies: []string{"far"}, RemoteProxyCount: 1, Entries: []string{"aside"}, EntryCount: 1,
		}
		check("at the start", "team", team)
		check("at the start", "spare", v1beta1.MCPGroupStatus{})

		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.GroupRef.Name = "spare" })
		forgo(t, client, "MCPRemoteProxy", "far")
		<-time.After(time.Second)
		team.Servers, team.ServerCount, team.RemoteProxies, team.RemoteProxyCount = []string{"api"}, 1, nil, 0
		check("after a member has moved", "team", team)
		check("after a member has come", "spare", v1beta1.MCPGroupStatus{Servers: []string{"web"}, ServerCount: 1})

		terminate[*v1beta1.MCPGroup](o.apiServer, "spare")
		o.rest()
		if exists[*v1beta1.MCPGroup](o.apiServer, "spare") {
			t.Error("a member holds its group")
		}
		o.took()
		o.end()
		again := start(t, o.apiServer, with)
		again.rest()
		checkWrites(t, "after a restart", again.tookOn())
		*o = *again
	})
}
