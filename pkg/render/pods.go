// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// AnyProxySelector selects the proxy pods of all MCPServers.
func AnyProxySelector() map[string]string {
	return map[string]string{labelApp: appProxy, labelToolHive: "true"}
}

// AnyStdioBackendSelector selects the backend pods of all MCPServers with transport stdio.
func AnyStdioBackendSelector() map[string]string {
	return map[string]string{labelToolHive: "true", labelTransport: string(v1beta1.TransportStdio)}
}

// ServerOf returns the name of the MCPServer that a pod with these labels was made for.
func ServerOf(labels map[string]string) string { return labels[labelName] }

// OnlyBackendPod returns the name of the one backend pod that an MCPServer with transport stdio has.
func OnlyBackendPod(name string) string { return StatefulSetName(name) + "-0" }
