// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Names of the objects made for the MCPServer of a name. They are ToolHive's; its users and other operators
// know them.

// DeploymentName is the name of the proxy's Deployment.
func DeploymentName(name string) string { return name }

// StatefulSetName is the name of the backend's StatefulSet.
func StatefulSetName(name string) string { return name }

// ProxyServiceName is the name of the Service that clients use.
func ProxyServiceName(name string) string { return "mcp-" + name + "-proxy" }

// BackendServiceName is the name of the Service by which the proxy reaches a backend with an HTTP transport.
func BackendServiceName(name string) string { return "mcp-" + name }

// HeadlessServiceName is the name of the backend's headless Service.
func HeadlessServiceName(name string) string { return "mcp-" + name + "-headless" }

// RunConfigName is the name of the ConfigMap that holds the proxy's RunConfig.
func RunConfigName(name string) string { return name + "-runconfig" }

// InlineAuthzName is the name of the ConfigMap that holds an inline authorization policy.
func InlineAuthzName(name string) string { return name + "-authz-inline" }

// RunnerName is the name of the proxy's ServiceAccount, of its Role and of the RoleBinding between them.
func RunnerName(name string) string { return name + "-proxy-runner" }

// BackendServiceAccountName is the name of the ServiceAccount that is made for the backend's pods when the
// MCPServer names none.
func BackendServiceAccountName(name string) string { return name + "-sa" }

// URL is where clients inside the cluster reach the MCPServer.
func URL(server *v1beta1.MCPServer) string {
	s := settingsOf(server)
	base := fmt.Sprintf("http://%s.%s.svc.cluster.local:%d",
		ProxyServiceName(server.Name), server.Namespace, s.proxyPort)
	if s.proxyMode == v1beta1.TransportSSE {
		return base + "/sse#" + server.Name
	}
	return base + "/mcp"
}
