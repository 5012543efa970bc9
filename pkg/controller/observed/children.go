// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Child is what is known of an object in the place of an MCPServer's child: what decides whether writers have work on
// it, its owner, and, for a workload, what rollouts and pruning depend on. The object itself is read from the API
// server where ownership is edited or explained. A cache holds it as a Cached.
type Child struct {
	apply.State
	// Spoilt reports that the object is named by its content and has another one, and Salt is that of a ConfigMap.
	Spoilt bool
	Salt   string
}

// Reducer makes children of objects.
type Reducer struct {
	Applier *apply.Applier
	// Writers are those of each kind of child.
	Writers map[schema.GroupKind][]apply.Writer
	// Largest is how large a part of an object of users may be that is kept, in bytes; bounds.DefaultSize when 0.
	Largest int
}

// Transform returns a cache.TransformFunc for a kind of children. The store has the results of earlier calls. A child that outlives its
// MCPServer is left whole: nearly always it is being deleted. A pass that needs it all the same reduces it, see Surviving.
func (r *Reducer) Transform(kind schema.GroupKind, store cache.Store, outlives func(child metav1.Object) bool) cache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok {
			return obj, nil // It was reduced before, or says that an object is gone.
		}
		ref := apply.NewObjectRef(kind, object.GetNamespace(), object.GetName())
		var before *Child
		item := itemOf(store, ref.NamespacedName)
		if item != nil && outlives(object) {
			return obj, nil
		}
		if known, ok := item.(*Cached); ok {
			before = known.child()
		}
		return cachedOf(r.Reduce(ref, object, before)), nil
	}
}

// Reduce returns what is kept of an object. before is what was kept of it earlier; nil for nothing.
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
	if config, ok := object.(*corev1.ConfigMap); ok && len(config.Data[render.SaltKey]) <= longestSalt {
		made.Salt = config.Data[render.SaltKey]
	}
	made.Object = ReducedObject(ref.Kind, object)
	return made
}

// longestSalt is more than a UID has, in bytes.
const longestSalt = 64

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

// ReducedObject returns what is kept of an object: of a workload, of a ServiceAccount with pull secrets, and of a Service that leads
// elsewhere, the struct of package
// workload; of any other object the metadata.
func ReducedObject(kind schema.GroupKind, object metav1.Object) metav1.Object {
	meta := identity(object)
	meta.Labels, meta.Annotations = only(object.GetLabels(), keptLabels), only(object.GetAnnotations(), keptAnnotations)
	meta.ManagedFields = entries(object, wantedFields[kind])
	var reduced workload.Reduced
	switch whole := object.(type) {
	case *appsv1.Deployment:
		reduced = workload.DeploymentOf(whole)
	case *appsv1.StatefulSet:
		reduced = workload.StatefulSetOf(whole)
	case *corev1.ServiceAccount:
		if len(whole.ImagePullSecrets) > 0 {
			reduced = workload.ServiceAccountOf(whole)
		}
	case *corev1.Service:
		if astray := render.Astray(&whole.Spec); astray != "" {
			reduced = &workload.Service{Astray: astray}
		}
	}
	if reduced != nil {
		return reduced.WithMeta(meta)
	}
	return &meta
}

// entries returns the managedFields of an object without their fields, but for a wanted one.
func entries(object metav1.Object, wanted *wantedField) []metav1.ManagedFieldsEntry {
	kept := slices.Clone(object.GetManagedFields())
	for i := range kept {
		entry, holds := &kept[i], false
		if wanted != nil && entry.Subresource != "status" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), wanted.name) {
			set, err := ownership.Fields(entry)
			holds = err == nil && set.Has(wanted.path)
		}
		if entry.FieldsV1, entry.FieldsType = nil, ""; holds {
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

var fieldReplicas = &wantedField{
	path: fieldmanager.Path("spec", "replicas"), name: `"f:replicas"`, alone: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
}

// wantedFields are those of the kinds that have one.
var wantedFields = map[schema.GroupKind]*wantedField{
	managers.Deployment: fieldReplicas, managers.StatefulSet: fieldReplicas,
	managers.ServiceAccount: {
		path: fieldmanager.Path("imagePullSecrets"), name: `"f:imagePullSecrets"`, alone: metav1.NewFieldsV1(`{"f:imagePullSecrets":{}}`),
	},
}

// IsShown reports whether the informer of its kind selects an object by its labels.
func IsShown(ref apply.ObjectRef, object *Child) bool {
	child := inventory.Match(ref.Kind, ref.Name)
	return child != nil && child.Selector.Selects(object.Object)
}

// Cached is a child as a cache holds it. There are ten for each MCPServer, so each is small: equal parts of many objects are stored once,
// and labels and annotations are lists in place of maps.
type Cached struct {
	namespace unique.Handle[string]
	name      string
	uid       types.UID
	version   string

	generation          int64
	created             int64 // in seconds
	deleted             *metav1.Time
	labels, Annotations Pairs
	owners              []unique.Handle[metav1.OwnerReference]
	entries             []cachedEntry

	// kept has no object.
	kept Child
	// reduced is the struct of package workload, without its metadata; nil for an object of which just the metadata is kept.
	reduced workload.Reduced
}

// cachedEntry is an entry of managedFields. The entries of most objects of a kind differ only in their times.
type cachedEntry struct {
	unique.Handle[metav1.ManagedFieldsEntry]

	time *metav1.Time
}

// Pairs are labels or annotations.
type Pairs []unique.Handle[pair]

type pair struct{ key, value string }

func cachedOf(child *Child) *Cached {
	object := child.Object
	c := &Cached{
		namespace: unique.Make(object.GetNamespace()), name: object.GetName(), uid: object.GetUID(), version: object.GetResourceVersion(),
		generation: object.GetGeneration(), created: object.GetCreationTimestamp().Unix(), deleted: object.GetDeletionTimestamp(),
		labels: pairsOf(object.GetLabels()), Annotations: pairsOf(object.GetAnnotations()),
		kept: *child,
	}
	c.kept.Object, c.kept.Salt = nil, strings.Clone(child.Salt)
	if reduced, ok := object.(workload.Reduced); ok {
		c.reduced = reduced.WithMeta(metav1.ObjectMeta{})
	}
	for _, owner := range object.GetOwnerReferences() {
		owner.Controller, owner.BlockOwnerDeletion = shared(owner.Controller), shared(owner.BlockOwnerDeletion)
		c.owners = append(c.owners, unique.Make(owner))
	}
	c.entries = make([]cachedEntry, 0, len(object.GetManagedFields()))
	for _, entry := range object.GetManagedFields() { // The fields are nil, or those of a wantedField.
		at := entry.Time
		entry.Time = nil
		c.entries = append(c.entries, cachedEntry{unique.Make(entry), at})
	}
	return c
}

// child returns the child for a pass.
func (c *Cached) child() *Child {
	meta := identity(c.GetObjectMeta())
	meta.CreationTimestamp, meta.DeletionTimestamp = metav1.Unix(c.created, 0), c.deleted
	meta.Labels, meta.Annotations = c.labels.values(), c.Annotations.values()
	meta.ManagedFields = make([]metav1.ManagedFieldsEntry, len(c.entries))
	for i, cached := range c.entries {
		meta.ManagedFields[i] = cached.Value()
		meta.ManagedFields[i].Time = cached.time
	}
	child := c.kept
	if child.Object = &meta; c.reduced != nil {
		child.Object = c.reduced.WithMeta(meta)
	}
	return &child
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has what informers and their handlers read.
func (c *Cached) GetObjectMeta() metav1.Object {
	return &cachedIdentity{
		metav1.ObjectMeta{Namespace: c.namespace.Value(), Name: c.name, UID: c.uid, ResourceVersion: c.version, Generation: c.generation}, c.owners,
	}
}

// cachedIdentity makes owner references when a handler asks for them. Informers ask for the name several times for each event.
type cachedIdentity struct {
	metav1.ObjectMeta

	owners []unique.Handle[metav1.OwnerReference]
}

// GetOwnerReferences returns the owner references of the object.
func (i *cachedIdentity) GetOwnerReferences() (references []metav1.OwnerReference) {
	for _, owner := range i.owners {
		references = append(references, owner.Value())
	}
	return references
}

var yes, no = true, false

// shared returns the same pointer for equal values, so that references can be compared.
func shared(value *bool) *bool {
	switch {
	case value == nil:
		return nil
	case *value:
		return &yes
	}
	return &no
}

func pairsOf(values map[string]string) Pairs {
	pairs := make(Pairs, 0, len(values))
	for key, value := range values {
		pairs = append(pairs, unique.Make(pair{key, value}))
	}
	return pairs
}

func (p Pairs) values() map[string]string {
	if len(p) == 0 {
		return nil
	}
	values := make(map[string]string, len(p))
	for _, handle := range p {
		values[handle.Value().key] = handle.Value().value
	}
	return values
}
