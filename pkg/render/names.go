// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// URL returns where clients inside the cluster reach the MCPServer.
func URL(server *v1beta1.MCPServer) string {
	s := settingsOf(server)
	base := fmt.Sprintf("http://%s.%s.svc.cluster.local:%d",
		inventory.ProxyService.Name(server.Name), server.Namespace, s.proxyPort)
	if s.proxyMode == v1beta1.TransportSSE {
		return base + "/sse#" + server.Name
	}
	return base + "/mcp"
}
