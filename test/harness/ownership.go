// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

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
)

// claims are those of Freehold's writers.
var claims = managers.Registry()

// CheckOwnership checks which manager owns what of an MCPServer and its children: it has exactly the components that its
// spec asks for; each writer owns fields, all within its claim; and the only other owners are the control plane and the
// author of the MCPServer.
func (ns *Namespace) CheckOwnership(t *testing.T, name string) {
	t.Helper()
	objects, err := ns.ObjectsOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	server := ServerOf(t, objects)
	for _, wrong := range StrayOwners(server, objects) {
		t.Error(wrong)
	}
}

// ServerOf returns the MCPServer among its objects.
func ServerOf(t *testing.T, objects map[Component]*unstructured.Unstructured) *v1beta1.MCPServer {
	t.Helper()
	object := objects[ServerItself]
	if object == nil {
		t.Fatal("there is no MCPServer")
	}
	server := &v1beta1.MCPServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, server); err != nil {
		t.Fatal(err)
	}
	return server
}

// StrayOwners returns what CheckOwnership would find wrong.
func StrayOwners(server *v1beta1.MCPServer, objects map[Component]*unstructured.Unstructured) []string {
	var wrong []string
	wanted := ComponentsOf(server)
	for component := range objects {
		// Configuration of an earlier spec stays for as long as the user may go back to a ReplicaSet that names it.
		if !slices.Contains(wanted, component) && !FormOf(component).Digest {
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

func strayEntries(server *v1beta1.MCPServer, component Component, object *unstructured.Unstructured) []string {
	var wrong []string
	missing := Managers(server, component)
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
		case IsSystem(component, &entry):
		default:
			wrong = append(wrong, fmt.Sprintf("%s owns fields by %s", writer, entry.Operation))
		}
	}
	if len(missing) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s own nothing", strings.Join(missing, " and ")))
	}
	return wrong
}

func outsideOfClaim(component Component, entry *metav1.ManagedFieldsEntry) []string {
	fields, err := ownership.Fields(entry)
	if err != nil {
		return []string{err.Error()}
	}
	writer, ok := claims.Writer(entry.Manager, FormOf(component).Kind, entry.Subresource)
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

// IsSystem reports whether an entry of managedFields belongs to Kubernetes itself or to the author of the MCPServer.
func IsSystem(component Component, entry *metav1.ManagedFieldsEntry) bool {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate {
		return false
	}
	switch component {
	case ServerItself:
		return entry.Manager == Author && entry.Subresource == ""
	case Proxy, Backend:
		return entry.Manager == "kube-controller-manager" && entry.Subresource == "status"
	default:
		return false
	}
}
