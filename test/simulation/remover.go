// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
)

// removal is what a client undoes of an object again and again.
type removal struct {
	name, group, kind string
	// remove takes something of Freehold's away, and returns false if it is not there; nil to delete the object.
	remove func(obj runtime.Object) bool
	// replicates is set for a client that creates again what is deleted, instead.
	replicates bool
}

// removals are those that tools make which clean up after others, or a second installation of another version.
var removals = []removal{
	{name: "a label of Services", kind: "Service", remove: unlabel},
	{name: "a label of Deployments", group: "apps", kind: "Deployment", remove: unlabel},
	{name: "a variable of Deployments", group: "apps", kind: "Deployment", remove: unset},
	{name: "a variable of StatefulSets", group: "apps", kind: "StatefulSet", remove: unset},
	{name: "owners of Services", kind: "Service", remove: func(obj runtime.Object) bool {
		had := len(access(obj).GetOwnerReferences()) > 0
		access(obj).SetOwnerReferences(nil)
		return had
	}},
	{name: "Services", kind: "Service"},
	{name: "ServiceAccounts", kind: "ServiceAccount"},
	{name: "Roles", group: "rbac.authorization.k8s.io", kind: "Role"},
	{name: "ConfigMaps", kind: "ConfigMap"},
	{name: "Deployments", group: "apps", kind: "Deployment"},
	{name: "StatefulSets", group: "apps", kind: "StatefulSet"},
	{name: "deletions of ConfigMaps", kind: "ConfigMap", replicates: true},
	{name: "deletions of Services", kind: "Service", replicates: true},
}

func unlabel(obj runtime.Object) bool {
	_, had := access(obj).GetLabels()[v1beta1.LabelToolHiveName]
	removeLabel(obj, v1beta1.LabelToolHiveName)
	return had
}

// unset removes the last variable, as that needs no other one.
func unset(obj runtime.Object) bool {
	container := &templateOf(obj).Spec.Containers[0]
	had := len(container.Env) > 0
	container.Env = []corev1.EnvVar{}
	return had
}

// remover is a client that undoes something whenever it is there.
type remover struct {
	removal
	until time.Time
	// copies are those of a replicator, by name.
	copies map[string]runtime.Object
}

const cleaner = "cleaner"

// Remove has a client undo something for so long.
func (s *Simulation) Remove(what removal, long time.Duration) {
	s.remover = &remover{what, time.Now().Add(long), map[string]runtime.Object{}}
}

// removes returns what the remover does next, if there is something.
func (s *Simulation) removes() (next []choice) {
	if s.remover == nil {
		return nil
	}
	if time.Now().After(s.remover.until) {
		s.note("the cleaner ends")
		s.remover = nil
		return nil
	}
	k, remove := s.Server.KindOf(s.remover.group, s.remover.kind), s.remover.remove
	if s.remover.replicates {
		return s.replicates(k, s.remover.copies)
	}
	for _, obj := range s.Server.List(k) {
		object := access(obj)
		if object.GetDeletionTimestamp() != nil || object.GetLabels()[v1beta1.LabelToolHiveName] == "" && object.GetLabels()[v1beta1.LabelMCPServer] == "" {
			continue
		}
		if remove != nil && !remove(obj.DeepCopyObject()) || s.squatter != nil && s.squatter.made[object.GetUID()] {
			continue // Two clients that do not wait would be at it for ever.
		}
		namespace, name := object.GetNamespace(), object.GetName()
		next = append(next, choice{name: cleaner + " removes " + s.remover.name + ": " + name, do: func() {
			var err error
			if remove == nil {
				background := metav1.DeletePropagationBackground
				err = s.Server.Delete(k, namespace, name, cleaner, metav1.DeleteOptions{PropagationPolicy: &background})
			} else {
				err = s.Server.Edit(k, namespace, name, "", cleaner, func(obj runtime.Object) { remove(obj) })
			}
			if err != nil && !apierrors.IsNotFound(err) {
				s.t.Fatal(err)
			}
		}})
	}
	return next
}

// replicates returns what a replicator does next: it creates again what it has seen, as long as the MCPServer is there.
func (s *Simulation) replicates(k *apiserver.Kind, copies map[string]runtime.Object) (next []choice) {
	for _, obj := range s.Server.List(k) {
		if metav1.GetControllerOf(access(obj)) != nil && copies[access(obj).GetName()] == nil {
			copied := obj.DeepCopyObject()
			access(copied).SetManagedFields(nil)
			copies[access(obj).GetName()] = copied
		}
	}
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		owner := metav1.GetControllerOf(access(copies[name]))
		server, ok := s.Server.Get(s.Server.KindOf(toolhive, "MCPServer"), s.Namespace, owner.Name)
		if !ok || access(server).GetUID() != owner.UID || access(server).GetDeletionTimestamp() != nil || s.exists(k.Group, k.Kind, name) {
			continue
		}
		next = append(next, choice{name: cleaner + " undoes " + s.remover.name + ": " + name, do: func() {
			if err := s.Server.Create(k, copies[name].DeepCopyObject(), cleaner); err != nil {
				s.t.Fatal(err)
			}
		}})
	}
	return next
}
