// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

// breakagesOfServices are those about pods and Services of others, and about fields that are not stored.
var breakagesOfServices = map[string]breakage{
	"an MCPServer of which a field was dropped": {
		func(w *world) {
			w.set("MCPServer", "web", `{"spec":{"image":"i","oidcConfigref":{"name":"idp"}}}`, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		}, "crds",
		[]string{"Error DroppedFields customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		`Freehold refuses these objects: shop/web ("spec.oidcConfigref")`, "docs/upgrade.md",
	},
	"a pod of others gets requests": {
		func(w *world) {
			w.at("MCPServer", "web", func(c content) {
				c["status"] = content{"conditions": []any{content{
					"type": "ForeignPods", "status": "True", "reason": "SelectedByService", "message": "These pods: evil", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}}}
			})
		}, "services",
		[]string{"Warning SelectedByService mcpserver/web"},
		"evil", "get pods -n shop -l 'toolhive-name=web'",
	},
	"Services of others lead past the proxy": {
		func(w *world) {
			for _, service := range []string{
				"name: past}, spec: {selector: {app: web, tier: mcp}}", "name: front}, spec: {selector: {app: mcpserver}}",
				"name: none}, spec: {}", "name: elsewhere}, spec: {selector: {app: web, tier: other}}", "name: mcp-web}, spec: {selector: {app: web}}",
			} {
				w.add("{apiVersion: v1, kind: Service, metadata: {namespace: shop, " + service + "}")
			}
			w.add(`
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web-0, labels: {app: web, toolhive-name: web, tier: mcp}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web-1, labels: {toolhive-name: web, toolhive: "true", app: mcpserver, app.kubernetes.io/name: mcpserver, app.kubernetes.io/instance: web}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: other-0, labels: {app: other, toolhive-name: other, tier: other}}}
`)
		}, "services",
		[]string{"Warning PastProxy service/past"},
		"of MCPServer web", "docs/security.md",
	},
}
