// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Children are the objects that there are under the names of an MCPServer's children.
type Children struct {
	// Owned are those of the MCPServer, in the order of creation.
	Owned []*unstructured.Unstructured
	// Foreign have the name of a child and were not made for the MCPServer.
	Foreign []apply.ObjectRef
	// Why says of each of the Foreign why it is no child, and what to do about it.
	Why map[apply.ObjectRef]string
	// Unreadable are those that the user may not read. Whether they are there is not known.
	Unreadable []apply.ObjectRef

	// unlisted is set when the user may not list ConfigMaps. Then only their names without a digest are Unreadable.
	unlisted bool
}

// Child returns a child, or nil when there is none.
func (c *Children) Child(ref apply.ObjectRef) *unstructured.Unstructured {
	for _, child := range c.Owned {
		if child.GroupVersionKind().GroupKind() == ref.Kind && child.GetName() == ref.Name {
			return child
		}
	}
	return nil
}

// Hides reports whether a child may exist that was not found, because the user may not read it.
func (c *Children) Hides(ref apply.ObjectRef) bool {
	return c.unlisted && ref.Kind == managers.ConfigMap || slices.Contains(c.Unreadable, ref)
}

// refs returns the references of everything that there may be for an MCPServer, in the order of creation. The names of ConfigMaps contain
// a digest of their content: mayList is false when the user may not list them, and then only the names without one are returned.
func (c *Client) refs(namespace, server string) (refs []apply.ObjectRef, mayList bool, err error) {
	names, err := c.configMapNames(namespace)
	if mayList = err == nil; !mayList && !apierrors.IsForbidden(err) {
		return nil, false, err
	}
	slices.Sort(names)
	for _, child := range inventory.Children() {
		if !child.ByContent || !mayList {
			refs = append(refs, child.Ref(namespace, server))
			continue
		}
		for _, name := range names {
			if of, ok := child.Server(name); ok && of == server {
				refs = append(refs, apply.NewObjectRef(child.Kind, namespace, name))
			}
		}
	}
	return refs, mayList, nil
}

// answer is one of the API server about the names of objects.
type answer struct {
	names []string
	err   error
}

// configMapNames returns the names of a namespace's ConfigMaps. A command that looks at all MCPServers of a namespace would otherwise
// list them once for each. What is kept is as old as the list of these MCPServers, which is read once as well. A write of the plugin,
// after which the operator may create ConfigMaps, discards it. That the user may not list them is kept as well; any other error is not.
func (c *Client) configMapNames(namespace string) ([]string, error) {
	kept, ok := c.configMaps[namespace]
	if !ok {
		kept.names, kept.err = c.names(versions[managers.ConfigMap], namespace)
		if c.configMaps == nil {
			c.configMaps = map[string]answer{}
		}
		if kept.err == nil || apierrors.IsForbidden(kept.err) {
			c.configMaps[namespace] = kept
		}
	}
	return kept.names, kept.err
}

// Children reads the children of an MCPServer.
func (c *Client) Children(server metav1.Object) (*Children, error) {
	refs, mayList, err := c.refs(server.GetNamespace(), server.GetName())
	if err != nil {
		return nil, err
	}
	found := make([]*unstructured.Unstructured, len(refs))
	unreadable := make([]bool, len(refs))
	var group errgroup.Group
	for i, ref := range refs {
		if ref.Kind == managers.ConfigMap && !mayList {
			unreadable[i] = true
			continue
		}
		group.Go(func() error {
			object, err := c.Get(ref)
			switch {
			case apply.IsAbsent(err):
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
	children := &Children{Why: map[apply.ObjectRef]string{}, unlisted: !mayList}
	backend := found[slices.IndexFunc(refs, func(r apply.ObjectRef) bool { return r.Kind == managers.StatefulSet })]
	owner := c.owner(server, backend)
	for i, object := range found {
		switch {
		case unreadable[i]:
			children.Unreadable = append(children.Unreadable, refs[i])
		case object == nil:
		default:
			verdict := owner.Check(refs[i].Kind, object)
			if verdict.Mine {
				children.Owned = append(children.Owned, object)
				continue
			}
			children.Foreign = append(children.Foreign, refs[i])
			serves := verdict.Other != ""
			if serves { // as far as the user may know
				_, err := c.Get(ServerRef(server.GetNamespace(), verdict.Other))
				serves = !apply.IsAbsent(err)
			}
			children.Why[refs[i]] = verdict.Explain(refs[i], serves, c.Kubectl)
		}
	}
	return children, nil
}

// owner returns the MCPServer with what inventory needs to know about its namespace, which is read when needed.
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
		return name, ok || err != nil // To a user who may not list MCPServers this is unknown: it may be another one's.
	}
	if backend != nil && owner.Check(managers.StatefulSet, backend).Mine {
		owner.Backend = backend
	}
	return owner
}

// Look reads everything that the operator would render an MCPServer from, and its children.
func (c *Client) Look(server *v1beta1.MCPServer, options render.Options) (desired.Input, *Children, error) {
	children, err := c.Children(server)
	if err != nil {
		return desired.Input{}, nil, err
	}
	in := desired.Input{Server: server, Child: children.Child, Children: children.Owned, Hides: children.Hides, Options: options}
	if authz := server.Spec.AuthzConfig; authz != nil && authz.ConfigMap != nil {
		if in.AuthzConfigMap, err = c.configMap(server.Namespace, authz.ConfigMap.Name); err != nil {
			return in, nil, err
		}
	}
	in.References, err = c.References(server)
	return in, children, err
}

// configMap returns a ConfigMap, or nil when there is none.
func (c *Client) configMap(namespace, name string) (*corev1.ConfigMap, error) {
	if name == "" {
		return nil, nil
	}
	found, err := as[corev1.ConfigMap](c.get(versions[managers.ConfigMap], namespace, name))
	if err != nil && !apply.IsAbsent(err) {
		return nil, fmt.Errorf("ConfigMap %s cannot be read: %w", name, err)
	}
	return found, nil
}

// Process returns the process of the backend to which the proxy of an MCPServer with transport stdio would be attached;
// it is empty when none is ready or the user may not see it.
func (c *Client) Process(namespace, server string) (string, error) {
	pod, err := as[corev1.Pod](c.get(pods, namespace, render.OnlyBackendPod(server)))
	if apply.IsAbsent(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return render.ProcessOf(workload.PodOf(pod)), nil
}
