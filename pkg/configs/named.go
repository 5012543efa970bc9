// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

// Named is an object in the namespace of the one that refers to it.
type Named struct{ Kind, Name string }

// OnlyReferences returns a spec that refers to the same objects, and has nothing else.
func OnlyReferences(spec *v1beta1.MCPServerSpec) (only v1beta1.MCPServerSpec) {
	for _, ref := range references {
		ref.Copy(&only, spec)
	}
	return only
}

// Of returns the objects that an MCPServer refers to, in the order of the fields of its spec; the same object may be there twice.
func Of(spec *v1beta1.MCPServerSpec) (all []Named) {
	for _, ref := range references {
		if named, ok := ref.Named(spec); ok && named.Kind == ref.Kind.Name {
			all = append(all, named)
		}
	}
	return all
}

// groupKind is no configuration: the status of an MCPGroup lists its members, and a proxy takes nothing of it.
var groupKind = of[*v1beta1.MCPGroup]{&Kind{
	Name: Group, WithFinalizers: func(namespace, name string, finalizers ...string) runtime.ApplyConfiguration {
		return toolhivev1beta1ac.MCPGroup(name, namespace).WithFinalizers(finalizers...)
	},
}}

// GroupRef is spec.groupRef.
var GroupRef = refer(
	groupKind, Reference{Field: "groupRef", Condition: v1beta1.ConditionGroupRefValidated},
	func(s *v1beta1.MCPServerSpec) **v1beta1.MCPGroupRef { return &s.GroupRef }, func(ref *v1beta1.MCPGroupRef) Named { return Named{Group, ref.Name} },
)
