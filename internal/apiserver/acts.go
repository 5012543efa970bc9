// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
		managed, err = k.scaled(before.live, func(scale runtime.Object) (runtime.Object, error) {
			return k.scale.managers[endpoint{k.scale.Version, subresource}].Update(scale, k.scaleOf(obj), manager)
		})
	} else {
		managed = r.manage().UpdateNoErrors(before.live.DeepCopyObject(), obj, manager)
	}
	if err != nil {
		return err
	}
	if err := k.Strategy.Update(subresource, managed, before.live); err != nil {
		return err
	}
	switch {
	case s.ends(managed):
		s.end(r, before)
	case !equality.Semantic.DeepEqual(managed, before.live):
		s.commit(r, keyOf(managed), managed)
	}
	return nil
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

// Restore takes the server back to an earlier version that has not been compacted, as an etcd that is restored from a snapshot: the versions
// since come once more, with other content. All watches end, as the API server has to be started again.
func (s *Server) Restore(version uint64) {
	s.CutWatches()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.objects {
		objects := slices.Clone(s.at(k, version))
		s.ordered[k], s.objects[k] = objects, map[types.NamespacedName]*object{}
		for _, o := range objects {
			s.objects[k][keyOf(o.live)] = o
		}
		delete(s.lists, k)
	}
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.version > version })
	s.version = version
}

// Exists reports whether there is an object. Committed may call it, but no other exported function.
func (s *Server) Exists(k *Kind, namespace, name string) bool {
	return s.objects[k][types.NamespacedName{Namespace: namespace, Name: name}] != nil
}
