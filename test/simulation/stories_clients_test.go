// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/internal/history"
)

// patchIn patches the spec of an MCPServer as a client does that knows another version of the kind.
func (s *story) patchIn(version, name string, set fields) {
	s.t.Helper()
	const manager = "kubectl-patch"
	clients, err := dynamic.NewForConfig(s.Server.Connect(manager, nil, false))
	if err != nil {
		s.t.Fatal(err)
	}
	k, body := s.Server.KindOf(toolhive, "MCPServer"), fields{"spec": set}
	resource := k.GroupVersion().WithResource(k.Resource)
	resource.Version = version
	if _, err := clients.Resource(resource).Namespace(s.Namespace).Patch(
		s.t.Context(), name, types.MergePatchType, []byte(text(body)), metav1.PatchOptions{FieldManager: manager}); err != nil {
		s.t.Fatal(err)
	}
	s.acted(func() history.Act {
		act := actOf(k, "patch", name, manager, body)
		act.Resource, act.PatchType = resource, types.MergePatchType
		return act
	})
}

// loseVersion has one of the owners of an object recorded in a version that the definition of the kind no longer has.
func (s *story) loseVersion(kind, name string) {
	k := s.Server.KindOf(toolhive, kind)
	obj, ok := s.Server.Get(k, s.Namespace, name)
	if !ok {
		return
	}
	lost := obj.DeepCopyObject()
	entries := access(lost).GetManagedFields()
	if len(entries) == 0 {
		return
	}
	entries[s.random.IntN(len(entries))].APIVersion = goneVersion
	access(lost).SetManagedFields(entries)
	s.Server.Put(k, lost)
}

// setStatus writes a leaf of the status of an MCPServer, as a client does that takes the status for its own.
func (s *story) setStatus(name, leaf string, value any) {
	s.t.Helper()
	const manager = "dashboard"
	k := s.Server.KindOf(toolhive, "MCPServer")
	err := s.Server.Edit(k, s.Namespace, name, "status", manager, func(obj runtime.Object) {
		if err := unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, value, "status", leaf); err != nil {
			s.t.Fatal(err)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.acted(func() history.Act {
		act := actOf(k, "patch", name, manager, fields{"status": fields{leaf: value}})
		act.Subresource, act.PatchType = "status", types.MergePatchType
		return act
	})
}
