// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// AnyProxySelector selects the proxy pods of all MCPServers.
func AnyProxySelector() string {
	return v1beta1.LabelApp + "=" + appProxy + "," + v1beta1.LabelToolHive + "=true"
}

// AnyBackendSelector selects the backend pods of all MCPServers. Proxies have no label of their transport.
func AnyBackendSelector() string {
	return v1beta1.LabelToolHive + "=true," + v1beta1.LabelToolHiveTransport
}

// ServerOf returns the name of the MCPServer that a pod with these labels was made for.
func ServerOf(labels map[string]string) string { return labels[v1beta1.LabelToolHiveName] }

// OnlyBackendPod returns the name of the one backend pod that an MCPServer with transport stdio has.
func OnlyBackendPod(name string) string { return inventory.Backend.Name(name) + "-0" }

// ImagesOf returns the images that the MCP server has in those of the backend's pods in which it is ready, sorted and
// without repetition.
func ImagesOf(pods []*corev1.Pod) []string {
	var images []string
	for _, pod := range pods {
		if ProcessOf(pod) == "" {
			continue
		}
		for i := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[i]; c.Name == backendContainer {
				images = append(images, c.Image)
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}
