// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Change is a change of an MCPServer.
type Change func(*v1beta1.MCPServer)

// Server is an MCPServer of a transport, with changes.
func Server(name string, transport v1beta1.Transport, changes ...Change) *v1beta1.MCPServer {
	server := &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.MCPServerSpec{Image: "example.com/mcp:1", Transport: transport, ProxyPort: 8080},
	}
	if transport != v1beta1.TransportStdio {
		server.Spec.MCPPort = 9000
	}
	for _, change := range changes {
		change(server)
	}
	return server
}

// InlineAuthorization gives an MCPServer a policy of its own.
func InlineAuthorization(server *v1beta1.MCPServer) {
	server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
		Type:   v1beta1.AuthzConfigTypeInline,
		Inline: &v1beta1.InlineAuthzConfig{Policies: []string{`permit(principal, action, resource);`}},
	}
}

// ServiceAccountOfUser lets the backend run with a ServiceAccount that the operator does not make.
func ServiceAccountOfUser(server *v1beta1.MCPServer) {
	name := "default"
	server.Spec.ServiceAccount = &name
}

// Replicas asks for numbers of pods.
func Replicas(proxy, backend int32) Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.Replicas, server.Spec.BackendReplicas = &proxy, &backend
	}
}

// PodTemplate gives an MCPServer a podTemplateSpec.
func PodTemplate(json string) Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(json)}
	}
}

// Environment gives an MCPServer an environment variable.
func Environment(name, value string) Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.Env = append(server.Spec.Env, v1beta1.EnvVar{Name: name, Value: value})
	}
}

// HTTPServer returns an MCPServer with every child that one can have without options.
func HTTPServer(name string, changes ...Change) *v1beta1.MCPServer {
	return Server(name, v1beta1.TransportStreamableHTTP, changes...)
}

// ServerWithAllChildren returns an MCPServer that has every child there is.
func ServerWithAllChildren(name string) *v1beta1.MCPServer {
	return Server(name, v1beta1.TransportStreamableHTTP, InlineAuthorization, Replicas(1, 1))
}

// SharedSessions gives an MCPServer a session store, so that several proxies share their sessions.
func SharedSessions(s *v1beta1.MCPServer) {
	s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
}
