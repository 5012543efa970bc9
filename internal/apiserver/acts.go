// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// What follows is how tests act without a client of their own.

// Edit stores what edit makes of an object, in one step and as a manager: spec, status and marks of deletion alike, which no
// single request could change. Admit is not asked. Through the subresource scale, edit changes spec.replicas only.
func (s *Server) Edit(k *Kind, namespace, name, subresource, manager string, edit func(obj runtime.Object)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{Client: manager, Verb: "update", Kind: k, Namespace: namespace, Name: name, Subresource: subresource, Manager: manager}
	before, err := s.find(r)
	if err != nil {
		return err
	}
	obj := before.live.DeepCopyObject()
	edit(obj)
	k.Strategy.Default(obj)
	var managed runtime.Object
	if subresource == "scale" {
		managed, err = k.scaled(before.live, obj, manager)
	} else {
		managed, err = r.manage().Update(before.live.DeepCopyObject(), obj, manager)
	}
	if err != nil {
		return err
	}
	if err := k.Strategy.Update(subresource, managed, before.live); err != nil {
		return err
	}
	switch {
	case s.ends(k, access(managed)):
		s.end(r, before)
	case !equality.Semantic.DeepEqual(managed, before.live):
		s.commit(r, keyOf(managed), managed)
	}
	return nil
}

// scaled returns an object with the owners that it has after a manager has written spec.replicas through the subresource scale. An API
// server converts the owners of that field to those of a Scale and back. A Scale has no field for 0, so 0 leaves the number without an
// owner; and without an owner before, nothing is recorded.
func (k *Kind) scaled(before, obj runtime.Object, manager string) (runtime.Object, error) {
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	version := k.GroupVersion()
	handler := managedfields.NewScaleHandler(access(before).GetManagedFields(), version, managedfields.ResourcePathMappings{version.String(): replicas})
	owners, err := handler.ToSubresource()
	if err != nil {
		return nil, err
	}
	now, was := replicasOf(obj), replicasOf(before)
	switch {
	case now == 0:
		owners = nil
	case now != was && len(owners) > 0:
		at := metav1.Now()
		owners = []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale", APIVersion: "autoscaling/v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
	}
	entries, err := handler.ToParent(owners)
	access(obj).SetManagedFields(entries)
	return obj, err
}

func replicasOf(workload runtime.Object) int64 {
	return reflect.ValueOf(workload).Elem().FieldByName("Spec").FieldByName("Replicas").Elem().Int()
}

// Remove ends an object at once, whatever holds it.
func (s *Server) Remove(k *Kind, namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{Client: "nobody", Verb: "delete", Kind: k, Namespace: namespace, Name: name}
	before, err := s.find(r)
	if err != nil {
		return err
	}
	s.end(r, before)
	return nil
}

// Create stores a new object, as a manager.
func (s *Server) Create(k *Kind, obj runtime.Object, manager string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{
		Client: manager, Verb: "create", Kind: k, Namespace: access(obj).GetNamespace(), Name: access(obj).GetName(), Manager: manager,
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	k.Strategy.Default(obj)
	managed, err := r.manage().Update(k.New(), obj, manager)
	if err != nil {
		return err
	}
	_, err = s.create(r, managed)
	return err
}

// Delete deletes an object as a client does that sends options.
func (s *Server) Delete(k *Kind, namespace, name, client string, options metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.remove(&Request{Client: client, Verb: "delete", Kind: k, Namespace: namespace, Name: name, Body: encode(options)})
	return err
}

// Exists reports whether there is an object. Committed may call it, but no other exported function.
func (s *Server) Exists(k *Kind, namespace, name string) bool {
	return s.objects[k][types.NamespacedName{Namespace: namespace, Name: name}] != nil
}
