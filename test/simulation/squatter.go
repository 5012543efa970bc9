// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// squat is what a client makes under names of Freehold's children, whose objects it deletes for that.
type squat struct {
	name, group, kind string
	// atOnce is set where no other client can create an object between the deletion and the creation.
	atOnce bool
	// change makes Freehold's object another one. What identifies it has been removed, and so have its owners and labels unless it is marked.
	change func(s *Simulation, obj runtime.Object)
	marked bool
	// leaves is set where the objects stay when the client ends.
	leaves bool
}

const ofAnother = "ConfigMaps of another MCPServer"

// squats are those of a client that may create and delete objects of one kind.
var squats = []squat{
	{name: "ConfigMaps with Freehold's marks", kind: "ConfigMap", marked: true, leaves: true, change: empty},
	{name: "ConfigMaps with Freehold's marks, at once", kind: "ConfigMap", marked: true, atOnce: true, change: empty},
	{name: "ConfigMaps without marks", kind: "ConfigMap", leaves: true, change: empty},
	{name: "ConfigMaps without marks, at once", kind: "ConfigMap", atOnce: true, leaves: true, change: empty},
	{name: "immutable ConfigMaps", kind: "ConfigMap", atOnce: true, marked: true, leaves: true, change: func(s *Simulation, obj runtime.Object) {
		empty(s, obj)
		obj.(*corev1.ConfigMap).Immutable = new(true)
	}},
	{name: "ConfigMaps with one file more", kind: "ConfigMap", atOnce: true, marked: true, leaves: true, change: func(_ *Simulation, obj runtime.Object) {
		obj.(*corev1.ConfigMap).BinaryData = map[string][]byte{"more": []byte("x")}
	}},
	{name: ofAnother, kind: "ConfigMap", atOnce: true, leaves: true, change: func(s *Simulation, obj runtime.Object) {
		empty(s, obj)
		s.giveToAnother(obj)
	}},
	{name: "Services", kind: "Service", atOnce: true, change: elsewhere},
	{name: "Services of another MCPServer", kind: "Service", atOnce: true, change: func(s *Simulation, obj runtime.Object) {
		elsewhere(s, obj)
		s.giveToAnother(obj)
	}},
	{name: "ServiceAccounts", kind: "ServiceAccount", change: unchanged},
	{name: "Roles", group: rbacv1.GroupName, kind: "Role", atOnce: true, change: unchanged},
	{name: "RoleBindings", group: rbacv1.GroupName, kind: "RoleBinding", atOnce: true, change: unchanged},
	{name: "Deployments", group: appsv1.GroupName, kind: "Deployment", atOnce: true, change: stopped},
	{name: "StatefulSets", group: appsv1.GroupName, kind: "StatefulSet", change: stopped},
}

func unchanged(*Simulation, runtime.Object) {}

// empty has each file of a ConfigMap say nothing.
func empty(_ *Simulation, obj runtime.Object) {
	config := obj.(*corev1.ConfigMap)
	config.Data, config.Immutable = maps.Clone(config.Data), nil
	for key := range config.Data {
		config.Data[key] = "{}"
	}
}

// elsewhere has a Service select other pods.
func elsewhere(_ *Simulation, obj runtime.Object) {
	service := obj.(*corev1.Service)
	service.Spec = corev1.ServiceSpec{Ports: service.Spec.Ports, Selector: map[string]string{"app": "theirs"}}
}

func stopped(_ *Simulation, obj runtime.Object) { *replicasOf(obj) = 0 }

// giveToAnother lets an object be one of another MCPServer, if there is one.
func (s *Simulation) giveToAnother(obj runtime.Object) {
	servers := inventory.Servers(obj.GetObjectKind().GroupVersionKind().GroupKind(), access(obj).GetName())
	for _, server := range s.Server.List(s.Server.KindOf(toolhive, managers.MCPServer.Kind)) {
		other := access(server)
		if other.GetNamespace() != access(obj).GetNamespace() || slices.Contains(servers, other.GetName()) || other.GetDeletionTimestamp() != nil {
			continue
		}
		access(obj).SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, server.GetObjectKind().GroupVersionKind())})
		return
	}
}

const squatter = "squatter"

// squatting is a client that squats.
type squatting struct {
	squat
	until time.Time
	// originals are Freehold's objects whose names it takes, by their names, and made the UIDs of its own.
	originals map[types.NamespacedName]runtime.Object
	made      map[types.UID]bool
	// untold are the names of its objects that no MCPServer reported when the cluster was last at rest, and specs is oracle.specs at that time.
	untold []types.NamespacedName
	specs  int
}

// Squat has a client squat for so long.
func (s *Simulation) Squat(what squat, long time.Duration) {
	s.squatter = &squatting{squat: what, until: time.Now().Add(long), originals: map[types.NamespacedName]runtime.Object{}, made: map[types.UID]bool{}}
	s.note("a client squats " + what.name)
}

// squatsNext returns what the squatter does next, if there is something.
func (s *Simulation) squatsNext() (next []choice) {
	q := s.squatter
	if q == nil {
		return nil
	}
	if time.Now().After(q.until) {
		s.evictSquatter()
		return nil
	}
	k := s.Server.KindOf(q.group, q.kind)
	for _, obj := range s.Server.List(k) {
		object := access(obj)
		if object.GetDeletionTimestamp() != nil || q.made[object.GetUID()] || !s.isServed(k, object) {
			continue
		}
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		next = append(next, choice{name: squatter + " deletes " + k.Kind + " " + key.Name, do: func() {
			q.originals[key] = obj
			background := metav1.DeletePropagationBackground
			if err := s.Server.Delete(k, key.Namespace, key.Name, squatter, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				s.t.Fatal(err)
			}
			if _, stays := s.Server.Get(k, key.Namespace, key.Name); q.atOnce && !stays {
				s.takePlace(k, obj)
			}
		}})
	}
	for _, key := range slices.SortedFunc(maps.Keys(q.originals), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		original := q.originals[key]
		if _, taken := s.Server.Get(k, key.Namespace, key.Name); taken || !s.isServed(k, access(original)) {
			continue
		}
		next = append(next, choice{name: squatter + " creates " + k.Kind + " " + key.Name, do: func() { s.takePlace(k, original) }})
	}
	return next
}

// isServed reports whether an object is Freehold's, of an MCPServer that stays, and one by whose name others are told.
func (s *Simulation) isServed(k *apiserver.Kind, object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != managers.MCPServer.Kind {
		return false
	}
	ref := apply.NewObjectRef(k.GroupKind(), object.GetNamespace(), object.GetName())
	if child := inventory.Named(ref, owner.Name); child == nil || k.Kind == managers.ConfigMap.Kind && !child.ByContent {
		return false
	}
	server, ok := s.Server.Get(s.Server.KindOf(toolhive, managers.MCPServer.Kind), object.GetNamespace(), owner.Name)
	return ok && access(server).GetUID() == owner.UID && access(server).GetDeletionTimestamp() == nil
}

// takePlace creates the squatter's object in the place of Freehold's.
func (s *Simulation) takePlace(k *apiserver.Kind, original runtime.Object) {
	theirs, before := original.DeepCopyObject(), access(original)
	object := access(theirs)
	object.SetManagedFields(nil)
	if !s.squatter.marked {
		object.SetLabels(nil)
		object.SetAnnotations(nil)
		object.SetOwnerReferences(nil)
	}
	s.squatter.change(s, theirs)
	err := s.Server.Create(k, theirs, squatter)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return
	case err != nil:
		s.t.Fatal(err)
	}
	made, _ := s.Server.Get(k, before.GetNamespace(), before.GetName())
	s.squatter.made[access(made).GetUID()] = true
}

// inTheWay returns the squatter's objects that exist.
func (s *Simulation) inTheWay() (theirs []metav1.Object) {
	for _, obj := range s.Server.List(s.Server.KindOf(s.squatter.group, s.squatter.kind)) {
		if s.squatter.made[access(obj).GetUID()] {
			theirs = append(theirs, access(obj))
		}
	}
	return theirs
}

// evictSquatter ends the squatter, and what it leaves behind, unless that stays.
func (s *Simulation) evictSquatter() {
	q := s.squatter
	s.note("the squatter of " + q.name + " ends")
	if !q.leaves {
		k := s.Server.KindOf(q.group, q.kind)
		for _, object := range s.inTheWay() {
			if err := s.Server.Delete(k, object.GetNamespace(), object.GetName(), squatter, metav1.DeleteOptions{}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.squatted, s.squatter = q, nil
}
