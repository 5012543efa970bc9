// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// AnyProxySelector selects the proxy pods of all MCPServers.
func AnyProxySelector() string {
	return v1beta1.LabelApp + "=" + appProxy + "," + v1beta1.LabelToolHive + "=true"
}

// OnlyBackendPod returns the name of the one backend pod that an MCPServer with transport stdio has.
func OnlyBackendPod(name string) string { return inventory.Backend.Name(name) + "-0" }

// ImagesOf returns the images that the MCP server has in those of the backend's pods in which it is ready, sorted and
// without repetition.
func ImagesOf(pods []*workload.Pod) []string {
	var images []string
	for _, pod := range pods {
		if ProcessOf(pod) == "" {
			continue
		}
		for i := range pod.Containers {
			if c := &pod.Containers[i]; c.Name == workload.BackendContainer {
				images = append(images, c.Image)
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}
