// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

const defaultPort = 8080

// DefaultProxyHost is the address on which a proxy listens unless Options name one: all of its pod's.
const DefaultProxyHost = "0.0.0.0"

// settings are values of a spec, with defaults where it has none. The CRD fills in most defaults; they are
// repeated here for objects stored before it did.
type settings struct {
	transport v1beta1.Transport
	// proxyMode is the protocol that clients speak: the transport's own, unless that is stdio.
	proxyMode       v1beta1.Transport
	proxyPort       int32
	mcpPort         int32
	sessionAffinity corev1.ServiceAffinity
}

func settingsOf(server *v1beta1.MCPServer) settings {
	spec := &server.Spec
	s := settings{
		transport:       cmp.Or(spec.Transport, v1beta1.TransportStdio),
		proxyPort:       cmp.Or(spec.ProxyPort, defaultPort),
		mcpPort:         cmp.Or(spec.MCPPort, defaultPort),
		sessionAffinity: cmp.Or(corev1.ServiceAffinity(spec.SessionAffinity), corev1.ServiceAffinityClientIP),
	}
	s.proxyMode = s.transport
	if s.stdio() {
		s.proxyMode = cmp.Or(spec.ProxyMode, v1beta1.TransportStreamableHTTP)
	}
	return s
}

func (s settings) stdio() bool { return s.transport == v1beta1.TransportStdio }
