// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// beforeTheBackend is what is written for a new MCPServer at once; afterTheBackend follows when a pod of the
// backend is ready, and the last write when one of the proxy is.
var (
	beforeTheBackend = slices.Concat(
		[]string{"apply MCPServer/web freehold-finalizer"},
		creations(inventory.InlineAuthz, inventory.Proxy),
		[]string{"apply MCPServer/web/status freehold-status"},
	)
	afterTheBackend = []string{"apply Deployment/web freehold-proxy"}
	atLast          = []string{"apply MCPServer/web/status freehold-status"}
)

// creations are the writes of all children but some, in the order of the inventory.
func creations(but ...*inventory.Child) (writes []string) {
	for _, child := range inventory.Children() {
		if !slices.Contains(but, child) {
			writes = append(writes, "apply "+child.Kind.Kind+"/"+child.Name("web")+" "+child.Writer)
		}
	}
	return writes
}

func (o *operating) expect(want []string, why string) {
	o.t.Helper()
	if diff := cmp.Diff(want, o.took()); diff != "" {
		o.t.Errorf("%s: writes (-want +got):\n%s", why, diff)
	}
}

// backendReady lets the StatefulSet's controller and the kubelet do their work, but for the pod itself.
func backendReady(s *apiServer, name string) {
	s.t.Helper()
	change(s, name, func(set *appsv1.StatefulSet) {
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, UpdateRevision: revision, CurrentRevision: revision,
		}
	})
}

// proxyReady lets the Deployment's controller do its work, once the proxy's pod is there.
func proxyReady(s *apiServer, name string) {
	s.t.Helper()
	change(s, name, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}
		if observed.RevisionOf(d) == 0 {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, observed.AnnotationRevision, "1")
		}
	})
}

// becomeReady takes an MCPServer all the way, and forgets the writes.
func (o *operating) becomeReady(name string) {
	o.t.Helper()
	backendReady(o.apiServer, name)
	o.addBackendPod(o.server(name), "first")
	o.rest()
	o.addProxyPod(name, proxyPod(name, render.ProxySelector(name)))
	proxyReady(o.apiServer, name)
	o.rest()
	if server := o.server(name); !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
		o.t.Fatalf("%s is not Ready: %+v", name, server.Status)
	}
	o.took()
}

func TestAnMCPServerGetsItsChildrenAndItsStatus(t *testing.T) {
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		o.expect(nil, "nothing to do")
		o.add(newServer("web"))
		o.rest()
		o.expect(beforeTheBackend, "a new MCPServer")
		if got := o.server("web").Status; got.Phase != v1beta1.PhasePending || got.ObservedGeneration != 1 {
			t.Errorf("status %+v, want pending at generation 1", got)
		}
		if got := o.server("web").Finalizers; !slices.Equal(got, []string{v1beta1.Finalizer}) {
			t.Errorf("finalizers %v", got)
		}

		// A runner that starts before its backend is ready exits.
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.Replicas = 1 })
		o.rest()
		o.expect(nil, "a backend pod that is not ready")

		backendReady(o.apiServer, "web")
		o.addBackendPod(o.server("web"), "first")
		o.rest()
		o.expect(afterTheBackend, "a backend pod is ready")

		o.addProxyPod("web", proxyPod("web", render.ProxySelector("web")))
		o.rest()
		o.expect(nil, "the Deployment does not know yet that a proxy pod is ready")
		proxyReady(o.apiServer, "web")
		o.rest()
		o.expect(atLast, "a proxy pod is ready")
		if got := o.server("web").Status; got.Phase != v1beta1.PhaseReady || got.ReadyReplicas != 1 || got.URL == "" {
			t.Errorf("status %+v, want ready", got)
		}
		if told := o.events.heard(); len(told) > 0 {
			t.Errorf("events of a creation that went well: %v", told)
		}
	})
}

// The Deployment, once it exists, is kept up whether the backend is ready or not.
func TestProxyStaysWithoutABackend(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.ReadyReplicas = 0 })
		o.rest()
		o.expect(nil, "the backend is gone for a while")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"note": "x"}},
			}}
		})
		o.rest()
		got := o.took()
		if !slices.Contains(got, "apply Deployment/web freehold-proxy") {
			t.Errorf("the proxy was not updated: %v", got)
		}
	})
}

// After the caches are filled, nothing is read from the API server any more, whatever happens.
func TestReadsAreThoseOfInformers(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		resources := []string{"configmaps", "mcpservers", "pods", "replicasets"} // RunConfigs are selected by another label.
		for _, kind := range inventory.Kinds() {
			resources = append(resources, inventory.Of(kind).Resource)
		}
		for _, config := range managers.Configs() {
			resources = append(resources, config.Resource)
		}
		var want []string
		for _, resource := range slices.Sorted(slices.Values(resources)) {
			want = append(want, "watch "+resource) // which lists as well
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(o.reads()))); diff != "" {
			t.Errorf("reads at the start (-want +got):\n%s", diff)
		}
		o.becomeReady("web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
		o.rest()
		remove[*appsv1.Deployment](o.apiServer, "web")
		o.rest()
		o.add(newServer("other"))
		o.rest()
		if reads := o.reads(); len(reads) > 0 {
			t.Errorf("reads afterwards: %v", reads)
		}
	})
}

// Every body tells the version that it is meant for, and the UID where there is one.
func TestWritesArePreconditioned(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, w := range o.writes {
			created := !strings.HasPrefix(w.String(), "apply MCPServer/")
			body := string(w.patch)
			if created != strings.Contains(body, `"resourceVersion":"1"`) || created == strings.Contains(body, `"metadata":{"name":"web","namespace":"shop","uid":"server-web"`) {
				t.Errorf("%s is sent with %s", w, body)
			}
		}
		if len(o.writes) != len(beforeTheBackend) {
			t.Errorf("%d writes, want %d", len(o.writes), len(beforeTheBackend))
		}
	})
}
