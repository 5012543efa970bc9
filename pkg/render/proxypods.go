// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

// AnyProxySelector selects the proxy pods of all MCPServers.
func AnyProxySelector() map[string]string {
	return map[string]string{labelApp: appProxy, labelToolHive: "true"}
}

// ProxyOf returns the name of the MCPServer that a proxy pod with these labels belongs to.
func ProxyOf(labels map[string]string) string { return labels[labelName] }
