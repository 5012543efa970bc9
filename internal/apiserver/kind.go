// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Kind is a kind of objects that a Server serves. It stores them in the version of GroupVersionKind.
type Kind struct {
	schema.GroupVersionKind
	// Versions are others in which it serves them, with the same fields.
	Versions []string
	// Resource is the plural name in paths, such as deployments.
	Resource string
	// ClusterScoped is set for kinds whose objects are in no namespace.
	ClusterScoped bool
	// Status is set for kinds with the subresource status.
	Status bool
	// Graceful is set for kinds whose objects stay, once deleted, until their grace period is over: pods.
	Graceful bool
	// New returns an empty object.
	New func() runtime.Object
	// Fields knows the types of the kind's fields.
	Fields managedfields.TypeConverter
	// Scheme converts and creates objects of New's type.
	Scheme interface {
		runtime.ObjectConvertor
		runtime.ObjectCreater
	}
	// Strategy is what the kind does beyond what all kinds do; Basic when nil.
	Strategy Strategy

	managers map[endpoint]*managedfields.FieldManager
	// scale is the kind of the subresource scale; nil for none.
	scale *Kind
}

// endpoint is where requests about a kind arrive. Each has a field manager, as the owners of fields are recorded with the version.
type endpoint struct{ version, subresource string }

// Strategy is what one kind does with the objects that clients send. It is called while no other request is carried out,
// and may modify the first object of its arguments.
type Strategy interface {
	// Default sets what a client left out.
	Default(obj runtime.Object)
	// Create refuses an object that is wrong, with an error of package errors of k8s.io/apimachinery, or makes it ready to
	// be stored.
	Create(obj runtime.Object) error
	// Update does so with a changed object. It raises the generation, which comes as it was before, where the kind counts
	// such a change, and puts back what may not be written through the subresource, which is empty or "status".
	Update(subresource string, obj, old runtime.Object) error
	// ResetFields are those that are not written through a subresource, so nobody comes to own them that way; nil for none.
	ResetFields(subresource string) *fieldpath.Set
}

// GroupResource names the kind in errors.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Prepare makes the field managers. A server does it with kinds that have none; a kind may belong to many servers.
func (k *Kind) Prepare() (err error) {
	if k.Strategy == nil {
		k.Strategy = Basic{Status: k.Status}
	}
	if countsReplicas(k.New()) {
		if k.scale, err = k.scaleKind(); err != nil {
			return err
		}
	}
	return k.prepare("", "status")
}

// prepare makes the field managers for some subresources.
func (k *Kind) prepare(subresources ...string) error {
	k.managers = map[endpoint]*managedfields.FieldManager{}
	for _, subresource := range subresources {
		for _, version := range k.served() {
			gvk := k.GroupKind().WithVersion(version)
			reset := map[fieldpath.APIVersion]*fieldpath.Set{}
			if fields := k.Strategy.ResetFields(subresource); fields != nil {
				reset[fieldpath.APIVersion(gvk.GroupVersion().String())] = fields
			}
			newManager := managedfields.NewDefaultFieldManager
			if _, custom := k.New().(runtime.Unstructured); custom {
				newManager = managedfields.NewDefaultCRDFieldManager
			}
			manager, err := newManager(
				k.Fields, k.Scheme, k.Strategy, k.Scheme, gvk, k.GroupVersion(), subresource, fieldpath.NewExcludeFilterSetMap(reset))
			if err != nil {
				return fmt.Errorf("cannot manage fields of %s: %w", gvk, err)
			}
			k.managers[endpoint{version, subresource}] = manager
		}
	}
	return nil
}

func access(obj runtime.Object) metav1.Object {
	found, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("%T has no metadata: %v", obj, err))
	}
	return found
}

// manage returns the field manager for a request.
func (r *Request) manage() *managedfields.FieldManager {
	return r.Kind.managers[endpoint{r.gvk().Version, r.Subresource}]
}

// served returns all versions in which a kind is served.
func (k *Kind) served() []string { return append([]string{k.Version}, k.Versions...) }

// gvk is the kind in the version of the request.
func (r *Request) gvk() schema.GroupVersionKind {
	return r.Kind.GroupKind().WithVersion(cmp.Or(r.Version, r.Kind.Version))
}

// written returns a copy of a stored object in the version of a request.
func (r *Request) written(live runtime.Object) runtime.Object {
	obj := live.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(r.gvk())
	return obj
}

// in returns an encoded object in another version. Its apiVersion comes first.
func (k *Kind) in(version string, encoded []byte) []byte {
	if version == "" || version == k.Version {
		return encoded
	}
	name := func(version string) []byte {
		return fmt.Appendf(nil, `"apiVersion":%q`, schema.GroupVersion{Group: k.Group, Version: version})
	}
	return bytes.Replace(encoded, name(k.Version), name(version), 1)
}
