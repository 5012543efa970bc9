// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// clients are the writers of all managers and the means to delete what is not wanted any more.
type clients struct {
	registry *fieldmanager.Registry
	writers  writers.Set
	// of has the writers of each kind of child.
	of       map[schema.GroupKind][]apply.Writer
	readers  map[schema.GroupKind]reader
	deleters map[schema.GroupKind]deleter
	// evict asks for the deletion of a pod, which its PodDisruptionBudget may refuse.
	evict deleter
	// schema, which has the kinds of one version, and clock go into every target that is added.
	schema  managedfields.TypeConverter
	version string
	clock   clock.PassiveClock
	errs    []error
}

// reader reads an object of one kind.
type reader func(ctx context.Context, namespace, name string) (metav1.Object, error)

// reading returns what reads an object.
func (c *clients) reading(ref apply.ObjectRef) func(ctx context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) {
		return c.readers[ref.Kind](ctx, ref.Namespace, ref.Name)
	}
}

// deleter deletes an object of one kind.
type deleter func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error

// deletion returns what sends the deletion of an object.
func (c *clients) deletion(ref apply.ObjectRef) func(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return c.deleters[ref.Kind](ctx, ref.Namespace, name, options)
	}
}

// eviction returns what sends the eviction of a pod.
func (c *clients) eviction(namespace string) func(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return c.evict(ctx, namespace, name, options)
	}
}

// typedClient is the part of a generated client, for one namespace, that is used here.
type typedClient[L, A any] interface {
	apply.Client[L, A]
	Get(ctx context.Context, name string, options metav1.GetOptions) (L, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// newClients connects every registered manager with the typed client of its kind.
func newClients(
	registry *fieldmanager.Registry, core kubernetes.Interface, servers versioned.Interface, clock clock.PassiveClock,
) (*clients, error) {
	c := &clients{
		registry: registry, writers: writers.Set{}, deleters: map[schema.GroupKind]deleter{},
		of: map[schema.GroupKind][]apply.Writer{}, readers: map[schema.GroupKind]reader{},
		clock: clock, schema: toolhiveac.NewTypeConverter(toolhivescheme.Scheme), version: v1beta1.SchemeGroupVersion.Version,
	}
	mcpServers := servers.ToolhiveV1beta1().MCPServers
	server := add(c, managers.MCPServer, mcpServers, writers.MCPServer)
	of := writers.MCPServerStatus
	of.Schema, of.Edits = server.Schema, server.Edits
	of.Apply = func(ctx context.Context, namespace string, config *toolhivev1beta1ac.MCPServerApplyConfiguration, options metav1.ApplyOptions) (*v1beta1.MCPServer, error) {
		return mcpServers(namespace).ApplyStatus(ctx, config, options)
	}
	addWriters(c, managers.MCPServer, "status", of)

	c.schema, c.version = applyconfigurations.NewTypeConverter(scheme.Scheme), "v1"
	add(c, managers.Deployment, core.AppsV1().Deployments, writers.Deployment)
	add(c, managers.StatefulSet, core.AppsV1().StatefulSets, writers.StatefulSet)
	add(c, managers.ServiceKind, core.CoreV1().Services, writers.Service)
	add(c, managers.ConfigMap, core.CoreV1().ConfigMaps, writers.ConfigMap)
	add(c, managers.ServiceAccount, core.CoreV1().ServiceAccounts, writers.ServiceAccount)
	add(c, managers.Role, core.RbacV1().Roles, writers.Role)
	add(c, managers.RoleBinding, core.RbacV1().RoleBindings, writers.RoleBinding)
	c.deleters[podKind] = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.CoreV1().Pods(namespace).Delete(ctx, name, options)
	}
	c.evict = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &options,
		})
	}
	for _, manager := range registry.Writers() {
		if w, ok := c.writers[writers.Key{Manager: manager.Name, Kind: manager.Kind}]; ok {
			c.of[manager.Kind] = append(c.of[manager.Kind], w)
		}
	}
	return c, errors.Join(append(c.errs, c.writers.Complete(registry))...)
}

// add makes the writers of all managers of a kind, and its deleter. It returns the target that they write to.
func add[C typedClient[L, A], L metav1.Object, A apply.Configuration[A]](
	c *clients, kind schema.GroupKind, namespaced func(namespace string) C, target apply.Target[L, A],
) apply.Target[L, A] {
	client := apply.NewTarget(namespaced, target.Extract, c.schema, managers.Ownership)
	client.Edits.Clock = c.clock
	target.Apply, target.Schema, target.Edits = client.Apply, client.Schema, client.Edits
	c.deleters[kind] = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return namespaced(namespace).Delete(ctx, name, options)
	}
	c.readers[kind] = func(ctx context.Context, namespace, name string) (metav1.Object, error) {
		return namespaced(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	addWriters(c, kind, "", target)
	return target
}

func addWriters[L metav1.Object, A apply.Configuration[A]](
	c *clients, kind schema.GroupKind, subresource string, target apply.Target[L, A],
) {
	// The caches extract from every object that there is, for which the generated functions do too much.
	extract, err := apply.Extractor[L, A](c.schema, kind.WithVersion(c.version), subresource)
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	target.Extract = extract
	c.errs = append(c.errs, writers.Add(c.writers, c.registry, kind, subresource, target))
}
