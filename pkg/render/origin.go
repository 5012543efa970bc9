// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/inventory"
)

// origins are the fields of an MCPServer from which fields of its children come, by the paths above these. The first that fits counts.
var origins = []struct {
	child       *inventory.Child
	path, field string
}{
	{inventory.Backend, ".spec.replicas", "spec.backendReplicas"},
	{inventory.Backend, `.spec.template.spec.containers[name="mcp"].image`, "spec.image"},
	{inventory.Backend, `.spec.template.spec.containers[name="mcp"].args`, "spec.args"},
	{inventory.Backend, `.spec.template.spec.containers[name="mcp"].ports`, "spec.mcpPort"},
	{inventory.Backend, `.spec.template.spec.serviceAccount`, "spec.serviceAccount"},
	{inventory.Backend, ".spec.template.spec", podTemplatePath},
	{inventory.BackendService, ".spec.ports", "spec.mcpPort"},
	{inventory.BackendService, ".spec.sessionAffinity", "spec.sessionAffinity"},
	{inventory.HeadlessService, ".spec.ports", "spec.mcpPort"},
	{inventory.ProxyService, ".spec.ports", "spec.proxyPort"},
	{inventory.ProxyService, ".spec.sessionAffinity", "spec.sessionAffinity"},
	{inventory.Proxy, ".spec.replicas", "spec.replicas"},
	{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].env`, sourceProxyEnv},
	{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].ports`, "spec.proxyPort"},
	{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].resources`, "spec.resources"},
	{inventory.Proxy, ".spec.template.spec.affinity", "spec.resourceOverrides.proxyDeployment.affinity"},
	{inventory.Proxy, ".spec.template.spec.imagePullSecrets", "spec.resourceOverrides.proxyDeployment.imagePullSecrets"},
	{inventory.Proxy, ".spec.template.spec.nodeSelector", "spec.resourceOverrides.proxyDeployment.nodeSelector"},
	{inventory.Proxy, ".spec.template.spec.tolerations", "spec.resourceOverrides.proxyDeployment.tolerations"},
	{inventory.Proxy, ".spec.template.spec.volumes", "spec.volumes"},
}

// Origin returns the field of an MCPServer that sets a field of one of its children, given by kind and name; "" where it has no such field.
func Origin(server string, kind schema.GroupKind, name, path string) (field string) {
	for _, o := range origins {
		if strings.HasPrefix(path, o.path) && o.child.Kind == kind && o.child.Name(server) == name {
			return o.field
		}
	}
	return ""
}
