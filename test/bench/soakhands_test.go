// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// handled is a churn of one MCPServer, which has a Deployment, a Service and a ConfigMap. The caches of its observer do not run.
func handled(t *testing.T, replicas int32) *churn {
	t.Helper()
	name := serverName(0)
	of := metav1.ObjectMeta{Namespace: measured, Name: name, UID: "uid"}
	var objects []runtime.Object
	for _, kind := range []string{"Service", "ConfigMap"} {
		objects = append(objects, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: of})
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &churn{
		site: &site{
			core:     fake.NewClientset(&appsv1.Deployment{ObjectMeta: of, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}),
			metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...),
		},
		namespace: measured, waits: newWaits(), uids: map[string]types.UID{name: "uid"}, scaled: map[string]bool{}, contested: map[string]bool{},
		labels: map[childKey]foreignLabel{}, observer: &observer{children: map[string]cache.SharedIndexInformer{}},
	}
	factory := metadatainformer.NewSharedInformerFactory(c.site.metadata, 0)
	for _, resource := range childrenToDelete {
		informer := factory.ForResource(gvrOf(resource)).Informer()
		if err := informer.AddIndexers(cache.Indexers{byServer: indexByServer}); err != nil {
			t.Fatal(err)
		}
		c.observer.children[resource] = informer
	}
	c.show(t, "services")
	c.show(t, "configmaps")
	return c
}

// show lets the observer see a child as it is.
func (c *churn) show(t *testing.T, resource string) {
	t.Helper()
	is, err := c.site.metadata.Resource(gvrOf(resource)).Namespace(measured).Get(t.Context(), serverName(0), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.observer.children[resource].GetStore().Add(is); err != nil {
		t.Fatal(err)
	}
}

func (c *churn) expectLost(t *testing.T, want ...string) {
	t.Helper()
	got, err := c.lost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

func TestLabelsThatDoNotLastAreFound(t *testing.T) {
	c := handled(t, 1)
	name := serverName(0)
	services, configMaps := uint64(0), uint64(4) // Their places among childrenToDelete.
	for _, choice := range []uint64{services, configMaps} {
		if err := c.labelOne(t.Context(), name, choice); err != nil {
			t.Fatal(err)
		}
	}
	// Neither has been seen with its label yet.
	c.expectLost(t, `configmaps server-00000 has the label "", want "2"`, `services server-00000 has the label "", want "1"`)
	c.show(t, "services")
	c.show(t, "configmaps")
	c.expectLost(t)

	for _, resource := range []string{"services", "configmaps"} {
		if err := c.observer.children[resource].GetStore().Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	c.expectLost(t, "services server-00000 is not the one that has a label") // The ConfigMap may have been of an earlier spec.

	c.show(t, "services")
	if err := c.deleteOne(t.Context(), name, services); err != nil {
		t.Fatal(err)
	}
	if err := c.observer.children["services"].GetStore().Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	c.expectLost(t)
}

func TestNumbersOfProxiesThatDoNotLastAreFound(t *testing.T) {
	c := handled(t, 1)
	c.expectLost(t)
	c.scaled[serverName(0)] = true
	c.expectLost(t, "the Deployment of server-00000 has 1 replicas, want 2")
	c = handled(t, 2)
	c.expectLost(t, "the Deployment of server-00000 has 2 replicas, want 1")
}
