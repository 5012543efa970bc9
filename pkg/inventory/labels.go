// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

// Labels of ToolHive's that name the MCPServer of a child.
const (
	// LabelName is on workloads, Services and pods.
	LabelName = "toolhive-name"
	// LabelServer is on ConfigMaps that hold a RunConfig.
	LabelServer = "toolhive.stacklok.io/mcp-server"
)

// ServerNamed returns the name of the MCPServer that the labels of a child tell; it is empty when they tell none.
func ServerNamed(labels map[string]string) string {
	if name := labels[LabelName]; name != "" {
		return name
	}
	return labels[LabelServer]
}
