// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// ServerNamed returns the name of the MCPServer that the labels of a child tell; it is empty when they tell none.
func ServerNamed(labels map[string]string) string {
	if name := labels[v1beta1.LabelToolHiveName]; name != "" {
		return name
	}
	return labels[v1beta1.LabelMCPServer]
}
