// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Compact is a child as a cache holds it. There are ten of each MCPServer, so each is small: its metadata is none of the API's structs,
// most of whose fields would be empty, nor of their maps, and equal parts of many objects are stored once. A pass converts it to a child
// for as long as it runs.
type Compact struct {
	compactMeta
	// state has no object.
	state  apply.State
	spoilt bool
	// more is a *workload.Deployment or *workload.StatefulSet without metadata, the pull secrets of a ServiceAccount, or nil.
	more any
}

// compactOf converts a child to the form in a cache.
func compactOf(from *Child) *Compact {
	k := &Compact{compactMeta: compactMetaOf(from.Object), state: from.State, spoilt: from.Spoilt}
	k.state.Object = nil
	switch object := from.Object.(type) {
	case *workload.Deployment:
		more := *object
		more.ObjectMeta = metav1.ObjectMeta{}
		k.more = &more
	case *workload.StatefulSet:
		more := *object
		more.ObjectMeta = metav1.ObjectMeta{}
		k.more = &more
	case *workload.ServiceAccount:
		if len(object.ImagePullSecrets) > 0 {
			k.more = object.ImagePullSecrets
		}
	}
	return k
}

// Child converts the cached form of an object of a kind to a child.
func (k *Compact) Child(kind schema.GroupKind) *Child {
	made := &Child{State: k.state, Spoilt: k.spoilt}
	meta := k.meta(wantedOf(kind))
	switch more := k.more.(type) {
	case *workload.Deployment:
		deployment := *more
		deployment.ObjectMeta = meta
		made.Object = &deployment
	case *workload.StatefulSet:
		set := *more
		set.ObjectMeta = meta
		made.Object = &set
	case []string:
		made.Object = &workload.ServiceAccount{ObjectMeta: meta, ImagePullSecrets: more}
	default:
		made.Object = &meta
	}
	return made
}

// wantedOf returns the field of a kind's objects whose owners are kept; nil for none.
func wantedOf(kind schema.GroupKind) *wantedField {
	switch kind {
	case managers.Deployment, managers.StatefulSet:
		return fieldReplicas
	case managers.ServiceAccount:
		return fieldPullSecrets
	}
	return nil
}

// compactMeta is the metadata that is kept of an object.
type compactMeta struct {
	namespace           unique.Handle[string]
	name, version       string
	uid                 types.UID
	generation          int64
	created             int64 // in seconds
	deleted             *metav1.Time
	labels, Annotations Pairs
	owners              []unique.Handle[compactOwner]
	entries             []compactEntry
}

// compactOwner is an owner reference.
type compactOwner struct {
	apiVersion, kind, name string
	uid                    types.UID
	controller, blocks     flag
}

// flag is a *bool that can be compared.
type flag int8

func flagOf(set *bool) flag {
	switch {
	case set == nil:
		return 0
	case *set:
		return 1
	}
	return -1
}

func (f flag) whole() *bool {
	if f == 0 {
		return nil
	}
	set := f > 0
	return &set
}

// compactEntry is an entry of managedFields. Most objects of a kind have the same ones, but for the times.
type compactEntry struct {
	manager unique.Handle[compactManager]
	time    *metav1.Time
}

type compactManager struct {
	name, apiVersion, fieldsType, subresource string
	operation                                 metav1.ManagedFieldsOperationType
	// holds is set when it owns that field of its kind of object.
	holds bool
}

func compactMetaOf(object metav1.Object) compactMeta {
	k := compactMeta{
		namespace: unique.Make(object.GetNamespace()), name: object.GetName(), version: object.GetResourceVersion(), uid: object.GetUID(),
		generation: object.GetGeneration(), created: object.GetCreationTimestamp().Unix(), deleted: object.GetDeletionTimestamp(),
		labels: compactPairs(object.GetLabels()), Annotations: compactPairs(object.GetAnnotations()),
	}
	for _, owner := range object.GetOwnerReferences() {
		k.owners = append(k.owners, unique.Make(compactOwner{
			owner.APIVersion, owner.Kind, owner.Name, owner.UID, flagOf(owner.Controller), flagOf(owner.BlockOwnerDeletion),
		}))
	}
	if entries := object.GetManagedFields(); len(entries) > 0 {
		k.entries = make([]compactEntry, 0, len(entries))
		for _, entry := range entries {
			manager := compactManager{entry.Manager, entry.APIVersion, entry.FieldsType, entry.Subresource, entry.Operation, entry.FieldsV1 != nil}
			k.entries = append(k.entries, compactEntry{unique.Make(manager), entry.Time})
		}
	}
	return k
}

func (k *compactMeta) meta(wanted *wantedField) metav1.ObjectMeta {
	meta := k.identity()
	meta.Generation, meta.CreationTimestamp, meta.DeletionTimestamp = k.generation, metav1.Unix(k.created, 0), k.deleted
	meta.Labels, meta.Annotations = k.labels.whole(), k.Annotations.whole()
	meta.OwnerReferences = k.ownerReferences()
	if len(k.entries) > 0 {
		meta.ManagedFields = make([]metav1.ManagedFieldsEntry, 0, len(k.entries))
	}
	for _, entry := range k.entries {
		manager := entry.manager.Value()
		whole := metav1.ManagedFieldsEntry{
			Manager: manager.name, Operation: manager.operation, APIVersion: manager.apiVersion, Time: entry.time,
			FieldsType: manager.fieldsType, Subresource: manager.subresource,
		}
		if manager.holds && wanted != nil {
			whole.FieldsV1 = wanted.alone
		}
		meta.ManagedFields = append(meta.ManagedFields, whole)
	}
	return meta
}

func (k *compactMeta) identity() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: k.namespace.Value(), Name: k.name, UID: k.uid, ResourceVersion: k.version}
}

func (k *compactMeta) ownerReferences() (references []metav1.OwnerReference) {
	for _, handle := range k.owners {
		owner := handle.Value()
		references = append(references, metav1.OwnerReference{
			APIVersion: owner.apiVersion, Kind: owner.kind, Name: owner.name, UID: owner.uid,
			Controller: owner.controller.whole(), BlockOwnerDeletion: owner.blocks.whole(),
		})
	}
	return references
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has as much as informers and their handlers ask for.
func (k *compactMeta) GetObjectMeta() metav1.Object {
	seen := &compactIdentity{k.identity(), k}
	seen.Generation = k.generation
	return seen
}

// compactIdentity makes owner references when a handler asks for them. Informers ask for its name several times for each event.
type compactIdentity struct {
	metav1.ObjectMeta
	of *compactMeta
}

func (i *compactIdentity) GetOwnerReferences() []metav1.OwnerReference { return i.of.ownerReferences() }

// Pairs are labels or annotations, sorted by their keys.
type Pairs []unique.Handle[pair]

type pair struct{ key, value string }

func compactPairs(values map[string]string) Pairs {
	if len(values) == 0 {
		return nil
	}
	kept := make(Pairs, 0, len(values))
	for key, value := range values {
		kept = append(kept, unique.Make(pair{key, value}))
	}
	slices.SortFunc(kept, func(a, b unique.Handle[pair]) int { return cmp.Compare(a.Value().key, b.Value().key) })
	return kept
}

func (p Pairs) whole() map[string]string {
	if len(p) == 0 {
		return nil
	}
	values := make(map[string]string, len(p))
	for _, handle := range p {
		values[handle.Value().key] = handle.Value().value
	}
	return values
}
