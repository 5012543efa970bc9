// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// remoteProxies is a resource that a cluster need not serve.
var remoteProxies = v1beta1.SchemeGroupVersion.WithResource("mcpremoteproxies")

// actionsOn counts requests for a resource.
func actionsOn(client *dynamicfake.FakeDynamicClient, verb, resource string) (count int) {
	for _, action := range client.Actions() {
		if action.Matches(verb, resource) {
			count++
		}
	}
	return count
}

// withoutProxies has an operator keep a group that an MCPRemoteProxy belongs to, in a cluster that does not serve the kind until
// serve is called.
func withoutProxies(
	t *testing.T, test func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string),
) {
	t.Helper()
	client, with := counting(other("MCPRemoteProxy", "far", map[string]any{"groupRef": ref("team")}))
	var served atomic.Bool
	client.PrependReactor("list", remoteProxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !served.Load(), nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	})
	operate(t, []runtime.Object{newGroup("team")}, with, func(t *testing.T, o *operating) {
		test(t, client, func() { served.Store(true) }, func() []string {
			group, _ := get[*v1beta1.MCPGroup](o.apiServer, "team")
			if group.Status.Phase != v1beta1.MCPGroupPhaseReady {
				t.Errorf("status %+v", group.Status)
			}
			return group.Status.RemoteProxies
		})
	})
}

// A kind that the API server does not serve is listed less and less often, and at least once in about a minute.
func TestAKindThatIsNotServedIsListedLessAndLessOften(t *testing.T) {
	withoutProxies(t, func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string) {
		<-time.After(time.Hour)
		before := actionsOn(client, "list", remoteProxies.Resource)
		<-time.After(time.Hour)
		if lists := actionsOn(client, "list", remoteProxies.Resource) - before; lists < 45 || lists > 60 {
			t.Errorf("%d lists in the second hour, want 45 to 60", lists)
		}
		if found := proxies(); found != nil {
			t.Errorf("remote proxies %v are not served", found)
		}
		serve()
		<-time.After(2 * time.Minute)
		if found := proxies(); !slices.Equal(found, []string{"far"}) {
			t.Errorf("remote proxies %v", found)
		}
	})
}
