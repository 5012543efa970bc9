// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Child is what is known of an object in the place of an MCPServer's child: what decides whether writers have work on
// it, its owner, and, for a workload, what rollouts and pruning depend on. The object itself is read from the API
// server where ownership is edited or explained. A cache holds it as a Compact.
type Child struct {
	apply.State
	// Spoilt reports that the object is named by its content and has another one.
	Spoilt bool
}

// Reducer makes children of objects.
type Reducer struct {
	Applier *apply.Applier
	// Writers are those of each kind of child.
	Writers map[schema.GroupKind][]apply.Writer
}

// Transform is a cache.TransformFunc for a kind of children. The store, which holds the earlier results, is asked for
// when it is needed.
func (r *Reducer) Transform(kind schema.GroupKind, store func() cache.Store) cache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok { // the note that an object is gone, or what was made of one before
			return obj, nil
		}
		ref := apply.NewObjectRef(kind, object.GetNamespace(), object.GetName())
		var before *Child
		if item, exists, err := store().GetByKey(ref.NamespacedName.String()); err == nil && exists {
			if known, ok := item.(*Compact); ok {
				before = known.Child(kind)
			}
		}
		return compactOf(r.Reduce(ref, object, before)), nil
	}
}

// Reduce returns what is kept of an object. before is what a cache or a pass has kept of it earlier, if anything.
func (r *Reducer) Reduce(ref apply.ObjectRef, object metav1.Object, before *Child) *Child {
	if !inventory.MayBelong(object) {
		meta := identity(object)
		meta.Labels = only(object.GetLabels(), keptLabels)
		return &Child{State: apply.State{Object: &meta}}
	}
	var known *apply.State
	if before != nil {
		known = &before.State
	}
	made := &Child{State: *r.Applier.Reduce(ref, object, known, r.Writers[ref.Kind]...), Spoilt: isSpoilt(object)}
	made.Object = ReducedObject(ref.Kind, object)
	return made
}

// isSpoilt reports whether an object has another content than the one that it is named by. What a pod has read of it cannot be
// undone by writing to it.
func isSpoilt(object metav1.Object) bool {
	config, ok := object.(*corev1.ConfigMap)
	if !ok || !inventory.HasDigest(config.Name) {
		return false
	}
	for _, server := range inventory.Servers(managers.ConfigMap, config.Name) {
		named := inventory.Named(apply.NewObjectRef(managers.ConfigMap, config.Namespace, config.Name), server)
		if named.ContentName(server, config.Data) == config.Name && len(config.BinaryData) == 0 {
			return false
		}
	}
	return true
}

// identity returns what is kept of each object.
func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Generation: object.GetGeneration(), OwnerReferences: object.GetOwnerReferences(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

// The labels and annotations that are kept: those that identify an object's owner, and the revision of a Deployment.
var (
	keptLabels      = []string{v1beta1.LabelToolHiveName, v1beta1.LabelMCPServer, v1beta1.LabelToolHive, v1beta1.LabelComponent}
	keptAnnotations = []string{
		v1beta1.AnnotationSource, v1beta1.AnnotationReferences, v1beta1.AnnotationReplicasSource, v1beta1.AnnotationReplicasWritten, AnnotationRevision,
	}
)

// only returns those of the values that have one of the keys; nil for none.
func only(values map[string]string, keys []string) (kept map[string]string) {
	for _, key := range keys {
		if value, ok := values[key]; ok {
			if kept == nil {
				kept = map[string]string{} // of the smallest size; a clone would be as large as all that there is
			}
			kept[key] = value
		}
	}
	return kept
}

// ReducedObject returns what is kept of an object: of a workload or a ServiceAccount the struct in package workload, of others the metadata.
func ReducedObject(kind schema.GroupKind, object metav1.Object) metav1.Object {
	meta := identity(object)
	meta.Labels, meta.Annotations = only(object.GetLabels(), keptLabels), only(object.GetAnnotations(), keptAnnotations)
	meta.ManagedFields = entries(object, wantedOf(kind))
	switch whole := object.(type) {
	case *appsv1.Deployment:
		deployment := workload.DeploymentOf(whole)
		deployment.ObjectMeta = meta
		return deployment
	case *appsv1.StatefulSet:
		set := workload.StatefulSetOf(whole)
		set.ObjectMeta = meta
		return set
	case *corev1.ServiceAccount:
		account := workload.ServiceAccountOf(whole)
		account.ObjectMeta = meta
		return account
	}
	return &meta
}

// entries returns the managedFields of an object without their fields, but for those that are wanted.
func entries(object metav1.Object, wanted *wantedField) []metav1.ManagedFieldsEntry {
	kept := slices.Clone(object.GetManagedFields())
	for i := range kept {
		entry := &kept[i]
		holds := false
		if wanted != nil && entry.Subresource != "status" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), wanted.name) {
			set, err := ownership.Fields(entry)
			holds = err == nil && set.Has(wanted.path)
		}
		entry.FieldsV1, entry.FieldsType = nil, ""
		if holds {
			entry.FieldsV1 = wanted.alone
		}
	}
	return kept
}

// wantedField is a field whose owners are kept.
type wantedField struct {
	path fieldpath.Path
	// name is in each entry that has the field, and alone is an entry that has nothing else.
	name  string
	alone *metav1.FieldsV1
}

var (
	fieldReplicas = &wantedField{
		path: fieldmanager.Path("spec", "replicas"), name: `"f:replicas"`, alone: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}
	fieldPullSecrets = &wantedField{
		path: fieldmanager.Path("imagePullSecrets"), name: `"f:imagePullSecrets"`, alone: metav1.NewFieldsV1(`{"f:imagePullSecrets":{}}`),
	}
)

// IsShown reports whether an informer shows an object of this state.
func IsShown(ref apply.ObjectRef, object *Child) bool {
	child := inventory.Match(ref.Kind, ref.Name)
	return child != nil && child.Selector.Selects(object.Object)
}
