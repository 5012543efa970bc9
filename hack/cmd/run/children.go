// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// child is an MCPServer or an object that it controls.
type child struct {
	parent string
	name   string
	// ready is false for a workload whose pods are not ready; state says it in words.
	ready    bool
	state    string
	managers []manager
}

// manager is a field manager's part in an object.
type manager struct {
	name   string
	fields int
}

// lister lists one kind of child.
type lister func(ctx context.Context) ([]metav1.Object, error)

// children returns the MCPServers of the namespace and everything that they control.
func (v *view) children(ctx context.Context) ([]child, error) {
	core, apps, rbac, all := v.core.CoreV1(), v.core.AppsV1(), v.core.RbacV1(), metav1.ListOptions{}
	kinds := []struct {
		prefix string
		list   lister
	}{
		{"mcpserver", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := v.servers.ToolhiveV1beta1().MCPServers(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"deployment.apps", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := apps.Deployments(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"statefulset.apps", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := apps.StatefulSets(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"service", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := core.Services(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"configmap", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := core.ConfigMaps(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"serviceaccount", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := core.ServiceAccounts(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"role.rbac.authorization.k8s.io", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := rbac.Roles(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
		{"rolebinding.rbac.authorization.k8s.io", func(ctx context.Context) ([]metav1.Object, error) {
			list, err := rbac.RoleBindings(v.namespace).List(ctx, all)
			return objects(list.Items), err
		}},
	}
	var children []child
	for _, kind := range kinds {
		found, err := kind.list(ctx)
		if err != nil {
			return nil, err
		}
		for _, obj := range found {
			c := child{parent: obj.GetName(), name: kind.prefix + "/" + obj.GetName()}
			if c.name != serverName(obj.GetName()) {
				owner := metav1.GetControllerOf(obj)
				if owner == nil || owner.Kind != v1beta1.MCPServerKind {
					continue
				}
				c.parent = owner.Name
			}
			c.ready, c.state = readiness(obj)
			if c.managers, err = managersOf(obj); err != nil {
				return nil, err
			}
			children = append(children, c)
		}
	}
	return children, nil
}

// objects returns pointers to the items of a typed list.
func objects[T any, P interface {
	*T
	metav1.Object
}](items []T) []metav1.Object {
	all := make([]metav1.Object, 0, len(items))
	for i := range items {
		all = append(all, P(&items[i]))
	}
	return all
}

// managersOf counts the fields of each manager of an object, those of its status apart.
func managersOf(obj metav1.Object) ([]manager, error) {
	var managers []manager
	entries := obj.GetManagedFields()
	for i := range entries {
		fields, err := ownership.Fields(&entries[i])
		if err != nil {
			return nil, err
		}
		name := entries[i].Manager
		if entries[i].Subresource != "" {
			name += " (" + entries[i].Subresource + ")"
		}
		managers = append(managers, manager{name: name, fields: fields.Leaves().Size()})
	}
	return managers, nil
}

// serverName returns the name of an MCPServer among the children.
func serverName(name string) string { return "mcpserver/" + name }

// readiness returns how many pods of a workload are ready; other objects are ready once they exist.
func readiness(obj metav1.Object) (ready bool, state string) {
	pods := func(ready, wanted int32) (bool, string) {
		return ready == wanted, fmt.Sprintf("%d/%d", ready, wanted)
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return pods(o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1))
	case *appsv1.StatefulSet:
		return pods(o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1))
	case *v1beta1.MCPServer:
		return o.Status.Phase == v1beta1.PhaseReady, string(o.Status.Phase)
	default:
		return true, "yes"
	}
}
