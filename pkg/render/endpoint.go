// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// Endpoint is where a pod of the proxy, or of the backend, listens, and how. The zero value is nowhere.
type Endpoint struct {
	// Port as a decimal number; empty for none.
	Port string
	// Transport of a backend.
	Transport string
}

// Endpoints returns where the proxy and the backend of an MCPServer are to listen.
func Endpoints(server *v1beta1.MCPServer) (proxy, backend Endpoint) {
	s := settingsOf(server)
	proxy.Port = strconv.Itoa(int(s.proxyPort))
	backend.Transport = string(s.transport)
	if !s.stdio() {
		backend.Port = strconv.Itoa(int(s.mcpPort))
	}
	return proxy, backend
}

// EndpointOf returns where the pods of a template listen, as Freehold and ToolHive write it.
func EndpointOf(template *corev1.PodTemplateSpec) (e Endpoint) {
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		switch container.Name {
		case ProxyContainer:
			if len(container.Ports) > 0 {
				e.Port = strconv.Itoa(int(container.Ports[0].ContainerPort))
			}
		case backendContainer:
			for _, variable := range container.Env {
				switch variable.Name {
				case envTransport:
					e.Transport = variable.Value
				case envPort:
					e.Port = variable.Value
				}
			}
		}
	}
	return e
}

// EndpointMoves reports whether the spec asks for other ports, or another transport, than those of the proxy that runs and of its
// backend, by the templates of their pods; nil for none. While the proxy is held, neither the backend nor a Service follows: it would
// not find them any more.
func EndpointMoves(server *v1beta1.MCPServer, proxy, backend *corev1.PodTemplateSpec) bool {
	if proxy == nil {
		return false
	}
	moves := func(template *corev1.PodTemplateSpec, wanted Endpoint) bool {
		now := EndpointOf(template)
		return now != wanted && now != (Endpoint{})
	}
	wantedProxy, wantedBackend := Endpoints(server)
	return moves(proxy, wantedProxy) || backend != nil && moves(backend, wantedBackend)
}

// MovesWithProxy reports whether an intent is for an object by which the proxy finds the backend, or may attach to it, or clients
// find the proxy.
func (i *Intent) MovesWithProxy() bool {
	return i.Kind == kindService || i.Child == inventory.Backend || i.Child == inventory.RunnerRole
}

// Containers returns as much of a template's containers as shows where its pods listen.
func (e Endpoint) Containers() []corev1.Container {
	switch {
	case e == Endpoint{}:
		return nil
	case e.Transport == "":
		port, err := strconv.ParseInt(e.Port, 10, 32)
		if err != nil {
			return nil
		}
		return []corev1.Container{{Name: ProxyContainer, Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}}}}
	}
	return []corev1.Container{{Name: backendContainer, Env: []corev1.EnvVar{
		{Name: envTransport, Value: e.Transport}, {Name: envPort, Value: e.Port},
	}}}
}
