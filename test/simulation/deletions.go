// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// deleted is a child that an operator has deleted.
type deleted struct {
	// owner is the UID of its MCPServer, and specs is oracle.specs at that time.
	owner types.UID
	specs int
	// by is the process. One that is behind may make again what another one has deleted.
	by string
}

// checkDeletion finds a process that deletes what is no MCPServer's, or that makes a child again which it has deleted, while users ask for the
// same: then it has deleted what was in use. A ConfigMap is made again when its content was changed, since nobody can change it back.
func (o *oracle) checkDeletion(r *apiserver.Request, event watch.EventType, obj runtime.Object) {
	if isPlugin(r) || r.Kind.Group == toolhive {
		return
	}
	object := access(obj)
	if event == watch.Deleted && !o.isAnMCPServers(object) {
		o.violated(r, "a deletion of what is no MCPServer's")
	}
	controller := metav1.GetControllerOf(object)
	if controller == nil || controller.Kind != managers.MCPServer.Kind || r.Kind.Kind == "ConfigMap" {
		return
	}
	name := r.Kind.Kind + "/" + object.GetName()
	switch now := (deleted{controller.UID, o.specs, r.Client}); {
	case event == watch.Deleted:
		o.deleted[name] = now
	case event == watch.Added && o.deleted[name] == now:
		o.violated(r, "what an operator has deleted is made again, for the same specs")
	}
}

// isAnMCPServers reports whether an object is a child of an MCPServer, or a pod of such a child.
func (o *oracle) isAnMCPServers(object metav1.Object) bool {
	controller := metav1.GetControllerOf(object)
	switch {
	case controller == nil: // It has lost its owner, or ToolHive's runner has made it.
		return object.GetAnnotations()[v1beta1.AnnotationSource] != "" || slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			class := managers.ClassOf(entry.Manager, entry.Subresource)
			return class == managers.ClassFreehold || class == managers.ClassToolHive
		})
	case controller.Kind == managers.MCPServer.Kind:
		kind := object.(runtime.Object).GetObjectKind().GroupVersionKind().GroupKind()
		return slices.Contains(inventory.Servers(kind, object.GetName()), controller.Name)
	}
	k := o.s.Server.KindOf("apps", controller.Kind)
	if k == nil {
		return false
	}
	owner, found := o.s.Server.Get(k, object.GetNamespace(), controller.Name)
	return !found || access(owner).GetUID() != controller.UID || o.isAnMCPServers(access(owner))
}
