// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Endpoints returns where the proxy and the backend of an MCPServer are to listen.
func Endpoints(server *v1beta1.MCPServer) (proxy, backend workload.Endpoint) {
	s := settingsOf(server)
	proxy.Port = strconv.Itoa(int(s.proxyPort))
	backend.Transport = string(s.transport)
	if !s.stdio() {
		backend.Port = strconv.Itoa(int(s.mcpPort))
	}
	return proxy, backend
}

// EndpointMoves reports whether the spec asks for other ports, or another transport, than those of the proxy that runs and of its
// backend, by the templates of their pods; nil for no template. While the proxy is held, neither the backend nor a Service follows: it would
// not find them any more.
func EndpointMoves(server *v1beta1.MCPServer, proxy, backend *workload.Endpoint) bool {
	if proxy == nil {
		return false
	}
	moves := func(now, wanted workload.Endpoint) bool {
		return now != wanted && now != workload.Endpoint{}
	}
	wantedProxy, wantedBackend := Endpoints(server)
	return moves(*proxy, wantedProxy) || backend != nil && moves(*backend, wantedBackend)
}

// MovesWithProxy reports whether an intent is for an object by which the proxy finds the backend, or may attach to it, or clients
// find the proxy.
func (i *Intent) MovesWithProxy() bool {
	return i.Kind == kindService || i.Child == inventory.Backend || i.Child == inventory.RunnerRole
}
