// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// strangers returns who has fields of a component of an MCPServer that is not Freehold, nor the controller that writes the
// status of StatefulSets.
func strangers(v harness.Version, server *v1beta1.MCPServer, component harness.Component) []string {
	known := map[string]bool{}
	for _, manager := range harness.Managers(server, component) {
		known[manager+" Apply"] = true
	}
	if component == harness.Backend {
		known["kube-controller-manager/status Update"] = true
	}
	var found []string
	for _, entry := range v.GetManagedFields() {
		manager := entry.Manager
		if entry.Subresource != "" {
			manager += "/" + entry.Subresource
		}
		if manager += " " + string(entry.Operation); !known[manager] {
			found = append(found, manager)
		}
	}
	return found
}

// backendHistory is what became of the backends of a namespace.
type backendHistory map[harness.Component]*harness.History

// recordBackend starts the histories of all that a proxyrunner of ToolHive's own operator writes.
func recordBackend(t *testing.T, ns *harness.Namespace) backendHistory {
	t.Helper()
	services := ns.Record(t, harness.FormOf(harness.BackendService).Resource)
	return backendHistory{
		harness.Backend:         ns.Record(t, harness.FormOf(harness.Backend).Resource),
		harness.BackendService:  services,
		harness.HeadlessService: services,
	}
}

// checkOwners checks that no version of any object of an MCPServer's backend had an owner beside Freehold, and that none
// was deleted. It returns how many versions there are.
func (b backendHistory) checkOwners(t *testing.T, server *v1beta1.MCPServer) (count int) {
	t.Helper()
	for _, component := range harness.ComponentsOf(server) {
		if b[component] == nil {
			continue
		}
		versions := harness.Named(harness.FormOf(component).Name(server.Name), b[component].Complete(t))
		if len(versions) == 0 {
			t.Errorf("%s has no version", component)
		}
		for _, v := range versions {
			if who := strangers(v, server, component); len(who) > 0 {
				t.Errorf("%s, version %d: %v own fields of it", component, v.Revision, who)
			}
			if v.Deleted {
				t.Errorf("%s was deleted at %d", component, v.Revision)
			}
		}
		count += len(versions)
	}
	return count
}

// backendImage returns the image of the MCP server in a version of a StatefulSet.
func backendImage(t *testing.T, v harness.Version) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(v.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if fields, ok := c.(map[string]any); ok && fields["name"] == "mcp" {
			image, _ := fields["image"].(string)
			return image
		}
	}
	t.Fatalf("StatefulSet %s, version %d, has no container mcp", v.GetName(), v.Revision)
	return ""
}
