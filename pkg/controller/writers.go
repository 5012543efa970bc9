// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// clients are the writers of all managers and the means to delete what is not wanted any more.
type clients struct {
	registry *fieldmanager.Registry
	writers  map[writerKey]apply.Writer
	// of has the writers of each kind of child.
	of       map[schema.GroupKind][]apply.Writer
	readers  map[schema.GroupKind]reader
	deleters map[schema.GroupKind]deleter
	// evict asks for the deletion of a pod, which its PodDisruptionBudget may refuse.
	evict deleter
	// schema and clock go into every target that is added.
	schema managedfields.TypeConverter
	clock  clock.PassiveClock
	errs   []error
}

type writerKey struct {
	name string
	kind schema.GroupKind
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
		registry: registry, writers: map[writerKey]apply.Writer{}, deleters: map[schema.GroupKind]deleter{},
		of: map[schema.GroupKind][]apply.Writer{}, readers: map[schema.GroupKind]reader{},
		clock: clock, schema: toolhiveac.NewTypeConverter(toolhivescheme.Scheme),
	}
	mcpServers := servers.ToolhiveV1beta1().MCPServers
	server := add(c, managers.MCPServer, mcpServers, apply.Target[*v1beta1.MCPServer, *toolhivev1beta1ac.MCPServerApplyConfiguration]{
		Extract:         toolhivev1beta1ac.ExtractMCPServer,
		OwnershipMarker: fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(v1beta1.Finalizer)),
		HasMarker:       func(live *v1beta1.MCPServer) bool { return slices.Contains(live.Finalizers, v1beta1.Finalizer) },
	})
	server.Apply = func(ctx context.Context, namespace string, config *toolhivev1beta1ac.MCPServerApplyConfiguration, options metav1.ApplyOptions) (*v1beta1.MCPServer, error) {
		return mcpServers(namespace).ApplyStatus(ctx, config, options)
	}
	server.Extract = toolhivev1beta1ac.ExtractMCPServerStatus
	// Not a field that ToolHive's operator writes as well, or its status would be taken for ours.
	server.OwnershipMarker = fieldmanager.Path("status", "conditions", fieldpath.KeyByFields("type", v1beta1.ConditionFieldsOwned))
	server.HasMarker = func(live *v1beta1.MCPServer) bool {
		return meta.FindStatusCondition(live.Status.Conditions, v1beta1.ConditionFieldsOwned) != nil
	}
	addWriters(c, managers.MCPServer, "status", server)

	c.schema = applyconfigurations.NewTypeConverter(scheme.Scheme)
	add(c, managers.Deployment, core.AppsV1().Deployments, apply.Target[*appsv1.Deployment, *appsv1ac.DeploymentApplyConfiguration]{
		Extract: appsv1ac.ExtractDeployment, Keep: render.KeepProxy, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.StatefulSet, core.AppsV1().StatefulSets, apply.Target[*appsv1.StatefulSet, *appsv1ac.StatefulSetApplyConfiguration]{
		Extract: appsv1ac.ExtractStatefulSet, Keep: render.KeepBackend, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.ServiceKind, core.CoreV1().Services, apply.Target[*corev1.Service, *corev1ac.ServiceApplyConfiguration]{
		Extract: corev1ac.ExtractService, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.ConfigMap, core.CoreV1().ConfigMaps, apply.Target[*corev1.ConfigMap, *corev1ac.ConfigMapApplyConfiguration]{
		Extract: corev1ac.ExtractConfigMap, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.ServiceAccount, core.CoreV1().ServiceAccounts, apply.Target[*corev1.ServiceAccount, *corev1ac.ServiceAccountApplyConfiguration]{
		Extract: corev1ac.ExtractServiceAccount, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.Role, core.RbacV1().Roles, apply.Target[*rbacv1.Role, *rbacv1ac.RoleApplyConfiguration]{
		Extract: rbacv1ac.ExtractRole, Source: v1beta1.AnnotationSource,
	})
	add(c, managers.RoleBinding, core.RbacV1().RoleBindings, apply.Target[*rbacv1.RoleBinding, *rbacv1ac.RoleBindingApplyConfiguration]{
		Extract: rbacv1ac.ExtractRoleBinding, Source: v1beta1.AnnotationSource,
	})
	c.deleters[podKind] = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.CoreV1().Pods(namespace).Delete(ctx, name, options)
	}
	c.evict = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &options,
		})
	}
	for _, manager := range registry.Writers() {
		if _, ok := c.writers[writerKey{manager.Name, manager.Kind}]; !ok && manager.Name != managers.Ownership {
			c.errs = append(c.errs, fmt.Errorf("field manager %q has no client for %s", manager.Name, manager.Kind))
		}
	}
	return c, errors.Join(c.errs...)
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
	for _, manager := range c.registry.Writers() {
		if manager.Kind != kind || manager.Subresource != subresource || manager.Name == managers.Ownership {
			continue
		}
		of := target
		if managers.CountsReplicas(manager.Name) {
			// One number has no template to settle, and changes with other generations than the rest.
			of.Keep, of.Source = nil, v1beta1.AnnotationReplicasSource
		}
		if manager.Name == managers.Requests {
			of.OwnershipMarker = fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationTakeRecord)
			of.HasMarker = func(live L) bool { return live.GetAnnotations()[v1beta1.AnnotationTakeRecord] != "" }
		}
		w, err := apply.NewWriter(c.registry, manager, of)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		c.writers[writerKey{manager.Name, kind}] = w
		if !slices.Contains(c.of[kind], w) {
			c.of[kind] = append(c.of[kind], w)
		}
	}
}
