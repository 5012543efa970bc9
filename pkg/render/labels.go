// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strconv"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// Label keys and values of ToolHive.
const (
	labelApp         = "app"
	labelAppName     = "app.kubernetes.io/name"
	labelAppInstance = "app.kubernetes.io/instance"
	labelToolHive    = "toolhive"
	labelBaseName    = "toolhive-basename"
	labelTransport   = "toolhive-transport"
	labelPort        = "toolhive-port"

	labelComponent = "toolhive.stacklok.io/component"
	labelManagedBy = "toolhive.stacklok.io/managed-by"
	labelAuthz     = "toolhive.stacklok.io/authz"

	appProxy = "mcpserver"
)

// ProxySelector are the labels that select the proxy's pods; the proxy's own objects carry them as well.
func ProxySelector(name string) map[string]string {
	return map[string]string{
		labelApp:            appProxy,
		labelAppName:        appProxy,
		labelAppInstance:    name,
		labelToolHive:       "true",
		inventory.LabelName: name,
	}
}

// BackendSelector are the labels that select the backend's pods.
func BackendSelector(name string) map[string]string {
	return map[string]string{labelApp: name}
}

// BackendLabels are the labels of the backend's StatefulSet, of its pods and of its Services.
func BackendLabels(server *v1beta1.MCPServer) map[string]string {
	labels := containerLabels(server)
	maps.Copy(labels, BackendSelector(server.Name))
	return labels
}

// containerLabels are the labels by which ToolHive lists its workloads.
func containerLabels(server *v1beta1.MCPServer) map[string]string {
	s := settingsOf(server)
	return map[string]string{
		labelToolHive:       "true",
		inventory.LabelName: server.Name,
		labelBaseName:       server.Name,
		labelTransport:      string(s.transport),
		labelPort:           strconv.Itoa(int(s.proxyPort)),
	}
}

func runConfigLabels(name string) map[string]string {
	return map[string]string{
		labelComponent:        "run-config",
		inventory.LabelServer: name,
		labelManagedBy:        "toolhive-operator",
	}
}

func inlineAuthzLabels(name string) map[string]string {
	labels := ProxySelector(name)
	labels[labelAuthz] = "inline"
	return labels
}

// withOperatorKeys returns the user's keys and the operator's, which win.
func withOperatorKeys(user, operator map[string]string) map[string]string {
	merged := make(map[string]string, len(user)+len(operator))
	maps.Copy(merged, user)
	maps.Copy(merged, operator)
	return merged
}
