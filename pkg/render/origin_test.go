// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// TestOriginReturnsAFieldThatMCPServersHave checks that Origin names an existing field of an MCPServer, or none.
func TestOriginReturnsAFieldThatMCPServersHave(t *testing.T) {
	for _, test := range []struct {
		child      *inventory.Child
		path, want string
	}{
		{inventory.Backend, `.spec.template.spec.containers[name="mcp"].image`, "spec.image"},
		{inventory.Backend, `.spec.template.spec.containers[name="mcp"].args`, "spec.args"},
		{inventory.Backend, `.spec.template.spec.containers[name="mcp"].env[name="A"].value`, "spec.podTemplateSpec"},
		{inventory.Backend, `.spec.template.spec.tolerations`, "spec.podTemplateSpec"},
		{inventory.Backend, `.spec.template.spec.serviceAccountName`, "spec.serviceAccount"},
		{inventory.Backend, ".spec.replicas", "spec.backendReplicas"},
		{inventory.Backend, ".spec.podManagementPolicy", ""},
		{inventory.Backend, ".metadata.labels.toolhive", ""},
		{inventory.Proxy, ".spec.replicas", "spec.replicas"},
		{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].image`, ""},
		{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].args`, ""},
		{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].env[name="A"].value`, "spec.resourceOverrides.proxyDeployment.env"},
		{inventory.Proxy, `.spec.template.spec.containers[name="toolhive"].resources.limits.cpu`, "spec.resources"},
		{inventory.Proxy, ".spec.template.spec.nodeSelector.disk", "spec.resourceOverrides.proxyDeployment.nodeSelector"},
		{inventory.ProxyService, `.spec.ports[port=8080,protocol="TCP"].port`, "spec.proxyPort"},
		{inventory.ProxyService, ".spec.selector.app", ""},
		{inventory.BackendService, ".spec.sessionAffinity", "spec.sessionAffinity"},
		{inventory.RunnerRole, ".rules", ""},
	} {
		got := render.Origin("web", test.child.Kind, test.child.Name("web"), test.path)
		if got != test.want {
			t.Errorf("%s of %s comes from %q, want %q", test.path, test.child.Name("web"), got, test.want)
		}
		if got != "" && !isField(reflect.TypeFor[v1beta1.MCPServer](), strings.Split(got, ".")) {
			t.Errorf("an MCPServer has no %s", got)
		}
	}
	if got := render.Origin("pay", inventory.Proxy.Kind, "web", ".spec.replicas"); got != "" {
		t.Errorf("a field of another MCPServer's child comes from %s", got)
	}
}

// isField reports whether a type has a field by these names in JSON.
func isField(of reflect.Type, names []string) bool {
	if len(names) == 0 {
		return true
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == names[0] && isField(f.Type, names[1:]) || f.Anonymous && isField(f.Type, names) {
			return true
		}
	}
	return false
}
