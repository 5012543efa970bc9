// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// removal is what a client undoes of an object again and again.
type removal struct {
	name, group, kind string
	// remove takes something of Freehold's away, and returns false if it is not there; nil to delete the object.
	remove func(obj runtime.Object) bool
}

// removals are those that tools make which clean up after others, or a second installation of another version.
var removals = []removal{
	{"a label of Services", "", "Service", unlabel},
	{"a label of Deployments", "apps", "Deployment", unlabel},
	{"a variable of Deployments", "apps", "Deployment", unset},
	{"a variable of StatefulSets", "apps", "StatefulSet", unset},
	{"owners of Services", "", "Service", func(obj runtime.Object) bool {
		had := len(access(obj).GetOwnerReferences()) > 0
		access(obj).SetOwnerReferences(nil)
		return had
	}},
	{"Services", "", "Service", nil},
	{"ServiceAccounts", "", "ServiceAccount", nil},
	{"Roles", "rbac.authorization.k8s.io", "Role", nil},
	{"ConfigMaps", "", "ConfigMap", nil},
	{"Deployments", "apps", "Deployment", nil},
	{"StatefulSets", "apps", "StatefulSet", nil},
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
}

const cleaner = "cleaner"

// Remove has a client undo something for so long.
func (s *Simulation) Remove(what removal, long time.Duration) {
	s.remover = &remover{what, time.Now().Add(long)}
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
	for _, obj := range s.Server.List(k) {
		object := access(obj)
		if object.GetDeletionTimestamp() != nil || object.GetLabels()[v1beta1.LabelToolHiveName] == "" && object.GetLabels()[v1beta1.LabelMCPServer] == "" {
			continue
		}
		if remove != nil && !remove(obj.DeepCopyObject()) {
			continue
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
