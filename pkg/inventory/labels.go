// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// ServerNamed returns the name of the MCPServer in the labels of a child; it is empty when they have none.
func ServerNamed(labels map[string]string) string {
	if name := labels[v1beta1.LabelToolHiveName]; name != "" {
		return name
	}
	return labels[v1beta1.LabelMCPServer]
}
