// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
)

// children adds the writers of each kind of child. See docs/architecture.md for how to add a child.
func (c *connection) children(core kubernetes.Interface) {
	child(c, managers.Deployment, core.AppsV1().Deployments, render.KeepProxy)
	child(c, managers.StatefulSet, core.AppsV1().StatefulSets, render.KeepBackend)
	child(c, managers.ServiceKind, core.CoreV1().Services, nil)
	child(c, managers.ConfigMap, core.CoreV1().ConfigMaps, nil)
	child(c, managers.ServiceAccount, core.CoreV1().ServiceAccounts, nil)
	child(c, managers.Role, core.RbacV1().Roles, nil)
	child(c, managers.RoleBinding, core.RbacV1().RoleBindings, nil)
}

// servers adds the writers of MCPServers.
func (c *connection) servers(client versioned.Interface) {
	mcpServers, kind := client.ToolhiveV1beta1().MCPServers, v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind)
	object := target(c, kind, "", mcpServers)
	object.OwnershipMarker = fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(v1beta1.Finalizer))
	object.HasMarker = func(live *v1beta1.MCPServer) bool { return slices.Contains(live.Finalizers, v1beta1.Finalizer) }
	c.errs = append(c.errs, add(c.Writers, c.registry, managers.MCPServer, "", object))

	status := target(c, kind, "status", mcpServers)
	status.Apply = func(ctx context.Context, namespace string, config *toolhivev1beta1ac.MCPServerApplyConfiguration, options metav1.ApplyOptions) (*v1beta1.MCPServer, error) {
		return mcpServers(namespace).ApplyStatus(ctx, config, options)
	}
	// The marker is a field that ToolHive's operator does not write as well; otherwise its status would be taken for ours.
	status.OwnershipMarker = fieldmanager.Path("status", "conditions", fieldpath.KeyByFields("type", v1beta1.ConditionFieldsOwned))
	status.HasMarker = func(live *v1beta1.MCPServer) bool {
		return meta.FindStatusCondition(live.Status.Conditions, v1beta1.ConditionFieldsOwned) != nil
	}
	c.errs = append(c.errs, add(c.Writers, c.registry, managers.MCPServer, "status", status))
}

// configs adds the writers of the objects that MCPServers refer to.
func (c *connection) configs(client versioned.Interface) {
	beta := client.ToolhiveV1beta1()
	config(c, v1beta1.MCPOIDCConfigKind, beta.MCPOIDCConfigs)
	config(c, v1beta1.MCPAuthzConfigKind, beta.MCPAuthzConfigs)
	config(c, v1beta1.MCPExternalAuthConfigKind, beta.MCPExternalAuthConfigs)
	config(c, v1beta1.MCPToolConfigKind, beta.MCPToolConfigs)
	config(c, v1beta1.MCPTelemetryConfigKind, beta.MCPTelemetryConfigs)
	config(c, v1beta1.MCPWebhookConfigKind, client.ToolhiveV1alpha1().MCPWebhookConfigs)
	config(c, v1beta1.MCPGroupKind, beta.MCPGroups)
}

// configClient is the part of a generated client of a kind that MCPServers refer to, for one namespace, that is used here.
type configClient[L, A any] interface {
	typedClient[L, A]
	ApplyStatus(ctx context.Context, config A, options metav1.ApplyOptions) (L, error)
}

// config adds the writers of a kind that MCPServers refer to.
func config[C configClient[L, A], L metav1.Object, A apply.Configuration[A]](c *connection, kind string, client func(namespace string) C) {
	row := managers.ConfigOf(v1beta1.Kind(kind))
	object := target(c, row.GroupVersionKind, "", client)
	object.OwnershipMarker = fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(row.Finalizer))
	object.HasMarker = func(live L) bool { return slices.Contains(live.GetFinalizers(), row.Finalizer) }
	c.errs = append(c.errs, add(c.Writers, c.registry, row.GroupKind(), "", object))

	status := target(c, row.GroupVersionKind, "status", client)
	status.Apply = func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error) {
		return client(namespace).ApplyStatus(ctx, config, options)
	}
	c.errs = append(c.errs, add(c.Writers, c.registry, row.GroupKind(), "status", status))
}

// Clients are the writers of all managers, and the clients that read and delete the objects that they write.
type Clients struct {
	Writers Set
	Objects map[schema.GroupKind]Objects
	// PodRefusal returns why the API server has last refused to create a pod of a StatefulSet, since a time; "" where nothing reports that.
	PodRefusal func(ctx context.Context, namespace string, set types.UID, since time.Time) (reason string, err error)
}

// Objects reads and deletes objects of one kind.
type Objects struct {
	Get    func(ctx context.Context, namespace, name string) (metav1.Object, error)
	Delete func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
}

// Connect returns the writers of all managers of a registry, which write with the clients. The clock gives the time since
// which a claim stands. It fails for a manager of a kind that has no client here; the writers that it returns then lack that
// one.
func Connect(
	registry *fieldmanager.Registry, core kubernetes.Interface, servers versioned.Interface, clock clock.PassiveClock,
) (*Clients, error) {
	c := &connection{
		Clients:  &Clients{Set{}, map[schema.GroupKind]Objects{}, podRefusals(core)},
		registry: registry, schema: Schema(), clock: clock,
	}
	c.servers(servers)
	c.configs(servers)
	c.children(core)
	return c.Clients, errors.Join(append(c.errs, c.Writers.complete(registry))...)
}

// connection makes Clients. The schema and the clock are those of every target.
type connection struct {
	*Clients
	registry *fieldmanager.Registry
	schema   managedfields.TypeConverter
	clock    clock.PassiveClock
	errs     []error
}

// typedClient is the part of a generated client, for one namespace, that is used here.
type typedClient[L, A any] interface {
	apply.Client[L, A]
	Get(ctx context.Context, name string, options metav1.GetOptions) (L, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// child adds the writers of a kind of child: client returns the client of a namespace, and keep, unless it is nil, is
// apply.Target.Keep.
func child[C typedClient[L, A], L metav1.Object, A apply.Configuration[A]](
	c *connection, kind schema.GroupKind, client func(namespace string) C, keep func(owned A) any,
) {
	row := inventory.Of(kind)
	if row == nil {
		c.errs = append(c.errs, fmt.Errorf("there is a client for %s, although no child is of that kind", kind))
		return
	}
	object := target(c, kind.WithVersion(row.Version), "", client)
	object.Keep, object.Source, object.References = keep, v1beta1.AnnotationSource, v1beta1.AnnotationReferences
	// Of a workload, values of its template are kept. A template names the UIDs of ConfigMaps.
	object.RollsPods = keep != nil || kind == managers.ConfigMap
	object.Unions = func(config A, live L) []apply.Union { return unions(config, live) }
	c.errs = append(c.errs, add(c.Writers, c.registry, kind, "", object))
}

// target returns the apply.Target of a client, and adds the client that reads and deletes the objects.
func target[C typedClient[L, A], L metav1.Object, A apply.Configuration[A]](
	c *connection, kind schema.GroupVersionKind, subresource string, client func(namespace string) C,
) apply.Target[L, A] {
	// The caches extract from every object that there is, for which the generated functions do too much.
	extract, err := ownership.Extractor[L, A](c.schema, kind, subresource)
	c.errs = append(c.errs, err)
	c.Objects[kind.GroupKind()] = Objects{
		Get: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return client(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Delete: func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
			return client(namespace).Delete(ctx, name, options)
		},
	}
	made := apply.NewTarget(client, extract, c.schema, managers.Ownership)
	made.Edits.Clock = c.clock
	return made
}
