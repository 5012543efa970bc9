// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

const (
	// proxyPortName is the name of the port of the proxy's container and of its Service.
	proxyPortName = "http"
	// backendAffinitySeconds is how long a proxy pod stays with one backend pod. It is ToolHive's value.
	backendAffinitySeconds = 1800
)

// backendServices renders the Services of a backend that listens on a port. They are always of type
// ClusterIP: ToolHive makes a NodePort of a port between 30000 and 32767, which no user asked for and which the API
// server refuses on the headless Service.
func (r *renderer) backendServices() {
	if r.stdio() {
		r.wantNot(inventory.HeadlessService)
		r.wantNot(inventory.BackendService)
		return
	}
	labels, selector := BackendLabels(r.server), backendServiceSelector(r.name)
	port := func() *corev1ac.ServicePortApplyConfiguration {
		return servicePort("port-"+strconv.Itoa(int(r.mcpPort)), r.mcpPort)
	}
	r.want(inventory.HeadlessService, corev1ac.Service(inventory.HeadlessService.Name(r.name), r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(labels).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(selector).
			WithPorts(port())))
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(selector).
		WithPorts(port())
	if r.spreads() {
		spec.WithSessionAffinity(corev1.ServiceAffinityNone)
	} else {
		spec.WithSessionAffinity(corev1.ServiceAffinityClientIP).
			WithSessionAffinityConfig(corev1ac.SessionAffinityConfig().
				WithClientIP(corev1ac.ClientIPConfig().WithTimeoutSeconds(backendAffinitySeconds)))
	}
	r.want(inventory.BackendService, corev1ac.Service(inventory.BackendService.Name(r.name), r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(labels).
		WithSpec(spec))
}

// spreads reports whether each connection of a proxy may reach another backend pod, which is for servers without sessions. The proxyrunner
// remembers for a session the address that it dialled, which is the Service's, also where it keeps sessions in Redis: the affinity alone
// brings a session back to its pod. Each session of transport sse needs its pod.
func (r *renderer) spreads() bool {
	return r.sessionAffinity == corev1.ServiceAffinityNone && r.transport == v1beta1.TransportStreamableHTTP
}

func (r *renderer) proxyService() {
	var overrides v1beta1.ResourceMetadataOverrides
	if o := r.server.Spec.ResourceOverrides; o != nil && o.ProxyService != nil {
		overrides = *o.ProxyService
	}
	name, selector := inventory.ProxyService.Name(r.name), ProxySelector(r.name)
	r.want(inventory.ProxyService, corev1ac.Service(name, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(withOperatorKeys(overrides.Labels, selector)).
		WithAnnotations(overrides.Annotations).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(selector).
			WithPorts(servicePort(proxyPortName, r.proxyPort)).
			WithSessionAffinity(r.sessionAffinity)))
}

// servicePort returns a TCP port that leads to the same port of the pods. The protocol is part of the key by which the
// API server merges ports, so it is always written.
func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().
		WithName(name).
		WithPort(port).
		WithTargetPort(intstr.FromInt32(port)).
		WithProtocol(corev1.ProtocolTCP)
}

// Astray returns how a Service leads to others than the pods that it is rendered for; empty when it does not.
func Astray(live *corev1.ServiceSpec) string {
	name := live.Selector[v1beta1.LabelToolHiveName]
	switch {
	case live.Type == corev1.ServiceTypeExternalName:
		return "the type of its Service is ExternalName; set it to ClusterIP"
	case maps.Equal(live.Selector, ProxySelector(name)), maps.Equal(live.Selector, backendServiceSelector(name)):
		return ""
	}
	return "the selector of its Service is another one"
}
