// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strconv"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// appProxy is ToolHive's value of labels of the proxy's objects.
const appProxy = "mcpserver"

// managed is the label of all children, but not of their pods, which another label would replace. A user's own label of that name wins.
var managed = map[string]string{v1beta1.LabelAppManagedBy: v1beta1.AppManagedBy}

// ProxySelector returns the labels that select the proxy's pods; the proxy's own objects carry them as well.
func ProxySelector(name string) map[string]string {
	return map[string]string{
		v1beta1.LabelApp:          appProxy,
		v1beta1.LabelAppName:      appProxy,
		v1beta1.LabelAppInstance:  name,
		v1beta1.LabelToolHive:     "true",
		v1beta1.LabelToolHiveName: name,
	}
}

// BackendSelector returns the label by which the StatefulSet selects the backend's pods. It is ToolHive's and immutable.
func BackendSelector(name string) map[string]string {
	return map[string]string{v1beta1.LabelApp: name}
}

// backendServiceSelector returns the labels by which Services select the backend's pods. Pods of other workloads often have the
// label app as well.
func backendServiceSelector(name string) map[string]string {
	return map[string]string{v1beta1.LabelApp: name, v1beta1.LabelToolHiveName: name}
}

// BackendLabels returns the labels of the backend's StatefulSet, of its pods and of its Services.
func BackendLabels(server *v1beta1.MCPServer) map[string]string {
	labels := containerLabels(server)
	maps.Copy(labels, BackendSelector(server.Name))
	return labels
}

// containerLabels returns the labels by which ToolHive lists its workloads.
func containerLabels(server *v1beta1.MCPServer) map[string]string {
	s := settingsOf(server)
	return map[string]string{
		v1beta1.LabelToolHive:          "true",
		v1beta1.LabelToolHiveName:      server.Name,
		v1beta1.LabelToolHiveBaseName:  server.Name,
		v1beta1.LabelToolHiveTransport: string(s.transport),
		v1beta1.LabelToolHivePort:      strconv.Itoa(int(s.proxyPort)),
	}
}

func runConfigLabels(name string) map[string]string {
	return map[string]string{
		v1beta1.LabelComponent: "run-config",
		v1beta1.LabelMCPServer: name,
		v1beta1.LabelManagedBy: "toolhive-operator",
	}
}

// accessLabels returns the labels of ServiceAccounts, Roles and RoleBindings. ToolHive gives them none; without one, an
// informer would have to watch all that there are in the cluster.
func accessLabels(name string) map[string]string {
	return map[string]string{v1beta1.LabelToolHive: "true", v1beta1.LabelToolHiveName: name}
}

func inlineAuthzLabels(name string) map[string]string {
	labels := ProxySelector(name)
	labels[v1beta1.LabelAuthz] = "inline"
	return labels
}

// withOperatorKeys returns the user's keys and the operator's, which win.
func withOperatorKeys(user, operator map[string]string) map[string]string {
	merged := make(map[string]string, len(user)+len(operator))
	maps.Copy(merged, user)
	maps.Copy(merged, operator)
	return merged
}
