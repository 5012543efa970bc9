// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// remoteProxies is a resource that a cluster need not serve.
var remoteProxies = v1beta1.SchemeGroupVersion.WithResource("mcpremoteproxies")

// defined is a CustomResourceDefinition with one version.
func defined(kind schema.GroupVersionResource, version string, served bool, established string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"versions": []any{map[string]any{"name": version, "served": served}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": established},
		}},
	}}
	object.SetAPIVersion(observed.Definitions.GroupVersion().String())
	object.SetKind("CustomResourceDefinition")
	object.SetName(kind.GroupResource().String())
	return object
}

// define installs a CustomResourceDefinition as an API server does: it is there before it is established.
func define(t *testing.T, client *dynamicfake.FakeDynamicClient, kind schema.GroupVersionResource) {
	t.Helper()
	of := client.Resource(observed.Definitions)
	if _, err := of.Create(t.Context(), defined(kind, kind.Version, true, "False"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := of.Update(t.Context(), defined(kind, kind.Version, true, "True"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

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
	t *testing.T, prepare func(*dynamicfake.FakeDynamicClient), test func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string),
) {
	t.Helper()
	client, with := counting(other(remoteProxyKind, "far", map[string]any{"groupRef": ref("team")}))
	var served atomic.Bool
	client.PrependReactor("list", remoteProxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !served.Load(), nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	})
	if prepare != nil {
		prepare(client)
	}
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

// A kind that the API server does not serve is listed once, and its definition watched. Once that is established, the kind is listed.
func TestUnservedKindIsNotListed(t *testing.T) {
	withoutProxies(t, nil, func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string) {
		<-time.After(time.Hour)
		if lists, watches := actionsOn(client, "list", remoteProxies.Resource), actionsOn(client, "watch", observed.Definitions.Resource); lists != 1 || watches != 1 {
			t.Errorf("%d lists and %d watches of the definition within an hour, want 1 and 1", lists, watches)
		}
		if found := proxies(); found != nil {
			t.Errorf("remote proxies %v are not served", found)
		}
		serve()
		define(t, client, remoteProxies)
		<-time.After(3 * time.Second)
		if found := proxies(); !slices.Equal(found, []string{"far"}) {
			t.Errorf("remote proxies %v", found)
		}
	})
}

// An API server that lags behind a definition is asked until it serves the kind.
func TestDefinitionIsAhead(t *testing.T) {
	ahead := func(client *dynamicfake.FakeDynamicClient) {
		client.PrependWatchReactor(observed.Definitions.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
			events := watch.NewFakeWithChanSize(1, false)
			events.Add(defined(remoteProxies, "v1beta1", true, "True"))
			return true, events, nil
		})
	}
	withoutProxies(t, ahead, func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string) {
		before := actionsOn(client, "list", remoteProxies.Resource)
		<-time.After(20 * time.Second)
		if lists := actionsOn(client, "list", remoteProxies.Resource) - before; lists < 2 || lists > 8 {
			t.Errorf("%d lists within 20s", lists)
		}
		serve()
		<-time.After(time.Minute)
		if found := proxies(); !slices.Equal(found, []string{"far"}) {
			t.Errorf("remote proxies %v", found)
		}
	})
}

// Where the definition cannot be watched, or the watch does not last, the kind is listed less and less often.
func TestDefinitionCannotBeWatched(t *testing.T) {
	for name, answer := range map[string]func() (watch.Interface, error){
		"forbidden": func() (watch.Interface, error) {
			return nil, apierrors.NewForbidden(observed.Definitions.GroupResource(), remoteProxies.GroupResource().String(), nil)
		},
		"ends": func() (watch.Interface, error) {
			events := watch.NewFake()
			events.Stop()
			return events, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := func(client *dynamicfake.FakeDynamicClient) {
				client.PrependWatchReactor(observed.Definitions.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
					events, err := answer()
					return true, events, err
				})
			}
			withoutProxies(t, refuse, func(t *testing.T, client *dynamicfake.FakeDynamicClient, serve func(), proxies func() []string) {
				<-time.After(time.Hour)
				before := actionsOn(client, "list", remoteProxies.Resource)
				<-time.After(time.Hour)
				if lists := actionsOn(client, "list", remoteProxies.Resource) - before; lists < 8 || lists > 12 {
					t.Errorf("%d lists in the second hour, want 8 to 12", lists)
				}
				serve()
				<-time.After(2 * observed.MaxUnserved)
				if found := proxies(); !slices.Equal(found, []string{"far"}) {
					t.Errorf("remote proxies %v", found)
				}
			})
		})
	}
}

func TestADefinitionSaysWhetherItsKindIsServed(t *testing.T) {
	d := observed.NewDefinition(nil, nil, remoteProxies)
	for name, c := range map[string]struct {
		found *unstructured.Unstructured
		want  bool
	}{
		"established":     {defined(remoteProxies, "v1beta1", true, "True"), true},
		"not yet":         {defined(remoteProxies, "v1beta1", true, "False"), false},
		"another version": {defined(remoteProxies, "v1alpha1", true, "True"), false},
		"not served":      {defined(remoteProxies, "v1beta1", false, "True"), false},
		"empty":           {&unstructured.Unstructured{}, false},
	} {
		if got := d.ServedBy(c.found); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
