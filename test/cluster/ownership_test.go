// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// claims are those of Freehold's writers.
var claims = managers.Registry()

// checkOwnership looks at who owns what of an MCPServer and its children: it has the components that its spec asks for and
// no others, each is owned by its writers, within their claims, and by nobody else but the control plane and the
// author of the MCPServer.
func checkOwnership(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	objects, err := ns.ObjectsOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	server := serverOf(t, objects)
	for _, wrong := range strayOwners(server, objects) {
		t.Error(wrong)
	}
}

func serverOf(t *testing.T, objects map[harness.Component]*unstructured.Unstructured) *v1beta1.MCPServer {
	t.Helper()
	object := objects[harness.ServerItself]
	if object == nil {
		t.Fatal("there is no MCPServer")
	}
	server := &v1beta1.MCPServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, server); err != nil {
		t.Fatal(err)
	}
	return server
}

// strayOwners tells what is wrong with the ownership of an MCPServer's components.
func strayOwners(server *v1beta1.MCPServer, objects map[harness.Component]*unstructured.Unstructured) []string {
	var wrong []string
	wanted := harness.ComponentsOf(server)
	for component := range objects {
		// Configuration of an earlier spec stays for as long as the user may go back to a ReplicaSet that names it.
		if !slices.Contains(wanted, component) && !harness.FormOf(component).Digest {
			wrong = append(wrong, fmt.Sprintf("MCPServer %s has a component that its spec does not ask for: %s", server.Name, component))
		}
	}
	for _, component := range wanted {
		object, ok := objects[component]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("MCPServer %s is without a component: %s", server.Name, component))
			continue
		}
		for _, why := range strayEntries(server, component, object) {
			wrong = append(wrong, fmt.Sprintf("%s of MCPServer %s: %s", component, server.Name, why))
		}
	}
	return wrong
}

func strayEntries(server *v1beta1.MCPServer, component harness.Component, object *unstructured.Unstructured) []string {
	var wrong []string
	missing := harness.Managers(server, component)
	for _, entry := range object.GetManagedFields() {
		writer := entry.Manager
		if entry.Subresource != "" {
			writer += "/" + entry.Subresource
		}
		at := slices.Index(missing, writer)
		switch {
		case at >= 0 && entry.Operation == metav1.ManagedFieldsOperationApply:
			missing = slices.Delete(missing, at, at+1)
			wrong = append(wrong, outsideOfClaim(component, &entry)...)
		case isSystem(component, &entry):
		default:
			wrong = append(wrong, fmt.Sprintf("%s owns fields by %s", writer, entry.Operation))
		}
	}
	if len(missing) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s own nothing", strings.Join(missing, " and ")))
	}
	return wrong
}

func outsideOfClaim(component harness.Component, entry *metav1.ManagedFieldsEntry) []string {
	fields, err := ownership.Fields(entry)
	if err != nil {
		return []string{err.Error()}
	}
	writer, ok := claims.Writer(entry.Manager, harness.FormOf(component).Kind, entry.Subresource)
	if !ok {
		return []string{entry.Manager + " is not registered"}
	}
	if fields.Empty() {
		return []string{entry.Manager + " owns no fields"}
	}
	var wrong []string
	for _, path := range writer.Claim.Outside(fields) {
		wrong = append(wrong, fmt.Sprintf("%s owns %s, which it does not claim", entry.Manager, path))
	}
	return wrong
}

// isSystem tells whether an entry is one that Kubernetes itself makes, or the author of the MCPServer.
func isSystem(component harness.Component, entry *metav1.ManagedFieldsEntry) bool {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate {
		return false
	}
	switch component {
	case harness.ServerItself:
		return entry.Manager == harness.Author && entry.Subresource == ""
	case harness.Proxy, harness.Backend:
		return entry.Manager == "kube-controller-manager" && entry.Subresource == "status"
	default:
		return false
	}
}
