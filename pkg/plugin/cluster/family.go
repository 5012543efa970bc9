// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/inventory"
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
	owner := c.owner(server, backend)
	for i, object := range found {
		switch {
		case unreadable[i]:
			family.Unreadable = append(family.Unreadable, refs[i])
		case object == nil:
		case owner.Whose(refs[i].Kind, object).Mine:
			family.Children = append(family.Children, object)
		default:
			family.Strangers = append(family.Strangers, refs[i])
		}
	}
	return family, nil
}

// owner is the MCPServer with what inventory has to know of its namespace, which is read when it is needed.
func (c *Client) owner(server metav1.Object, backend *unstructured.Unstructured) inventory.Owner {
	owner := inventory.Owner{Server: server}
	names := sync.OnceValues(func() (map[types.UID]string, error) {
		servers, err := c.Servers(server.GetNamespace())
		found := map[types.UID]string{}
		for _, s := range servers {
			found[s.UID] = s.Name
		}
		return found, err
	})
	owner.Living = func(uid types.UID) (string, bool) {
		found, err := names()
		name, ok := found[uid]
		return name, ok || err != nil // A user who may not list MCPServers cannot tell: it may be another one's.
	}
	if backend != nil && owner.Whose(vocabulary.StatefulSet, backend).Mine {
		owner.Backend = backend
	}
	return owner
}
