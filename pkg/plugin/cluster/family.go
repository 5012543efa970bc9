// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Children returns the references of everything that the operator may make for an MCPServer, what is made first first.
func Children(namespace, server string) []apply.ObjectRef {
	return []apply.ObjectRef{
		ref(vocabulary.ServiceAccount, namespace, render.RunnerName(server)),
		ref(vocabulary.Role, namespace, render.RunnerName(server)),
		ref(vocabulary.RoleBinding, namespace, render.RunnerName(server)),
		ref(vocabulary.ServiceAccount, namespace, render.BackendServiceAccountName(server)),
		ref(vocabulary.ConfigMap, namespace, render.RunConfigName(server)),
		ref(vocabulary.ConfigMap, namespace, render.InlineAuthzName(server)),
		ref(vocabulary.ServiceKind, namespace, render.HeadlessServiceName(server)),
		ref(vocabulary.ServiceKind, namespace, render.BackendServiceName(server)),
		ref(vocabulary.StatefulSet, namespace, render.StatefulSetName(server)),
		ref(vocabulary.ServiceKind, namespace, render.ProxyServiceName(server)),
		ref(vocabulary.Deployment, namespace, render.DeploymentName(server)),
	}
}

// Family are the objects that there are under the names of an MCPServer's children.
type Family struct {
	// Children of the MCPServer, in the order of Children.
	Children []*unstructured.Unstructured
	// Strangers bear the name of a child and were not made for the MCPServer.
	Strangers []apply.ObjectRef
	// Unreadable are those that the user may not read. Whether they are there is not known.
	Unreadable []apply.ObjectRef
}

// Child returns a child, or nil when there is none.
func (f *Family) Child(ref apply.ObjectRef) *unstructured.Unstructured {
	for _, child := range f.Children {
		if child.GroupVersionKind().GroupKind() == ref.Kind && child.GetName() == ref.Name {
			return child
		}
	}
	return nil
}

// Family reads the children of an MCPServer.
func (c *Client) Family(server metav1.Object) (*Family, error) {
	refs := Children(server.GetNamespace(), server.GetName())
	found := make([]*unstructured.Unstructured, len(refs))
	unreadable := make([]bool, len(refs))
	var group errgroup.Group
	for i, ref := range refs {
		group.Go(func() error {
			object, err := c.Get(ref)
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case apierrors.IsForbidden(err):
				unreadable[i] = true
				return nil
			}
			found[i] = object
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	family := &Family{}
	backend := found[slices.IndexFunc(refs, func(r apply.ObjectRef) bool { return r.Kind == vocabulary.StatefulSet })]
	for i, object := range found {
		switch {
		case unreadable[i]:
			family.Unreadable = append(family.Unreadable, refs[i])
		case object == nil:
		case madeFor(object, server, backend):
			family.Children = append(family.Children, object)
		default:
			family.Strangers = append(family.Strangers, refs[i])
		}
	}
	return family, nil
}

// madeFor tells whether an object is a child of the MCPServer: it is controlled by it or by one of its name, as after
// the MCPServer was made anew; or by nobody, and an annotation, or a manager of ToolHive's and a label, tell that it was
// made for the MCPServer; or by the backend's StatefulSet, which controls the Services that ToolHive's runner makes.
func madeFor(object *unstructured.Unstructured, server metav1.Object, backend *unstructured.Unstructured) bool {
	controller := metav1.GetControllerOf(object)
	switch {
	case controller == nil:
		source, ok := apply.ParseSource(object.GetAnnotations()[apply.SourceAnnotation])
		return ok && source.UID == server.GetUID() || ofToolHive(object, server)
	case controller.Kind == vocabulary.StatefulSet.Kind:
		return backend != nil && controller.UID == backend.GetUID() && ofToolHive(object, server)
	default:
		return controller.Kind == vocabulary.MCPServer.Kind && controller.Name == server.GetName()
	}
}

// ofToolHive tells whether ToolHive has made an object for an MCPServer of this name, or Freehold has taken it over and
// was interrupted.
func ofToolHive(object *unstructured.Unstructured, server metav1.Object) bool {
	return render.ServerOf(object.GetLabels()) == server.GetName() &&
		slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			class := vocabulary.ClassOf(e.Manager, "")
			return class == vocabulary.ClassToolHive || class == vocabulary.ClassFreehold
		})
}
