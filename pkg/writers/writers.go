// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writers says how each of Freehold's field managers writes objects of its kind: what it owns of one, what it keeps as it
// is, and how it tells of its source. The operator adds clients to it; without them a writer can plan, see apply.Plan, and not
// send.
package writers

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Targets of all kinds, without clients and schemas.
var (
	MCPServer = apply.Target[*v1beta1.MCPServer, *toolhivev1beta1ac.MCPServerApplyConfiguration]{
		Extract:         toolhivev1beta1ac.ExtractMCPServer,
		OwnershipMarker: fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(v1beta1.Finalizer)),
		HasMarker:       func(live *v1beta1.MCPServer) bool { return slices.Contains(live.Finalizers, v1beta1.Finalizer) },
	}
	// MCPServerStatus has a marker that ToolHive's operator does not write as well, or its status would be taken for ours.
	MCPServerStatus = apply.Target[*v1beta1.MCPServer, *toolhivev1beta1ac.MCPServerApplyConfiguration]{
		Extract:         toolhivev1beta1ac.ExtractMCPServerStatus,
		OwnershipMarker: fieldmanager.Path("status", "conditions", fieldpath.KeyByFields("type", v1beta1.ConditionFieldsOwned)),
		HasMarker: func(live *v1beta1.MCPServer) bool {
			return meta.FindStatusCondition(live.Status.Conditions, v1beta1.ConditionFieldsOwned) != nil
		},
	}
	Deployment = apply.Target[*appsv1.Deployment, *appsv1ac.DeploymentApplyConfiguration]{
		Extract: appsv1ac.ExtractDeployment, Keep: render.KeepProxy, Source: v1beta1.AnnotationSource,
	}
	StatefulSet = apply.Target[*appsv1.StatefulSet, *appsv1ac.StatefulSetApplyConfiguration]{
		Extract: appsv1ac.ExtractStatefulSet, Keep: render.KeepBackend, Source: v1beta1.AnnotationSource,
	}
	Service = apply.Target[*corev1.Service, *corev1ac.ServiceApplyConfiguration]{
		Extract: corev1ac.ExtractService, Source: v1beta1.AnnotationSource,
	}
	ConfigMap = apply.Target[*corev1.ConfigMap, *corev1ac.ConfigMapApplyConfiguration]{
		Extract: corev1ac.ExtractConfigMap, Source: v1beta1.AnnotationSource,
	}
	ServiceAccount = apply.Target[*corev1.ServiceAccount, *corev1ac.ServiceAccountApplyConfiguration]{
		Extract: corev1ac.ExtractServiceAccount, Source: v1beta1.AnnotationSource,
	}
	Role = apply.Target[*rbacv1.Role, *rbacv1ac.RoleApplyConfiguration]{
		Extract: rbacv1ac.ExtractRole, Source: v1beta1.AnnotationSource,
	}
	RoleBinding = apply.Target[*rbacv1.RoleBinding, *rbacv1ac.RoleBindingApplyConfiguration]{
		Extract: rbacv1ac.ExtractRoleBinding, Source: v1beta1.AnnotationSource,
	}
)

// Key tells one writer from the others.
type Key struct {
	// Manager is the field manager.
	Manager string
	Kind    schema.GroupKind
}

// Set is writers of several managers.
type Set map[Key]apply.Writer

// Add adds the writers of all registered managers of a kind that write through a subresource; "" is the object itself.
func Add[L metav1.Object, A apply.Configuration[A]](
	s Set, registry *fieldmanager.Registry, kind schema.GroupKind, subresource string, target apply.Target[L, A],
) error {
	var errs []error
	for _, manager := range registry.Writers() {
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
		w, err := apply.NewWriter(registry, manager, of)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s[Key{manager.Name, kind}] = w
	}
	return errors.Join(errs...)
}

// Complete returns an error for each registered manager that has no writer.
func (s Set) Complete(registry *fieldmanager.Registry) error {
	var errs []error
	for _, manager := range registry.Writers() {
		if _, ok := s[Key{manager.Name, manager.Kind}]; !ok && manager.Name != managers.Ownership {
			errs = append(errs, fmt.Errorf("field manager %q has no client for %s", manager.Name, manager.Kind))
		}
	}
	return errors.Join(errs...)
}

// Planners returns the writers of all managers, to plan with. The schema knows all kinds.
func Planners(schema managedfields.TypeConverter) (Set, error) {
	s, registry := Set{}, managers.Registry()
	err := errors.Join(
		plan(s, registry, schema, managers.MCPServer, "", MCPServer),
		plan(s, registry, schema, managers.MCPServer, "status", MCPServerStatus),
		plan(s, registry, schema, managers.Deployment, "", Deployment),
		plan(s, registry, schema, managers.StatefulSet, "", StatefulSet),
		plan(s, registry, schema, managers.ServiceKind, "", Service),
		plan(s, registry, schema, managers.ConfigMap, "", ConfigMap),
		plan(s, registry, schema, managers.ServiceAccount, "", ServiceAccount),
		plan(s, registry, schema, managers.Role, "", Role),
		plan(s, registry, schema, managers.RoleBinding, "", RoleBinding),
	)
	return s, errors.Join(err, s.Complete(registry))
}

func plan[L metav1.Object, A apply.Configuration[A]](
	s Set, registry *fieldmanager.Registry, schema managedfields.TypeConverter, kind schema.GroupKind, subresource string, target apply.Target[L, A],
) error {
	target.Schema = schema
	return Add(s, registry, kind, subresource, target)
}
