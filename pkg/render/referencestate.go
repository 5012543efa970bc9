// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// ReferenceState is all of an object that an MCPServer refers to that makes a difference to what is rendered. Two states that are
// equal render the same. It leaves out what others write to the status, such as the members of a group: each new member would
// otherwise be news for all others.
type ReferenceState struct {
	// Name is that of a Reference.
	Name string
	UID  types.UID
	// Generation is 0 for a group, of whose spec nothing is rendered, and for kinds without one. The states of the latter differ by
	// the resourceVersion, which is empty for all others.
	Generation      int64
	ResourceVersion string
	Deleted         bool
	// Phase is that of a group.
	Phase v1beta1.MCPGroupPhase
	// Hash is that in the status of a config. Invalid reports that its status calls this generation invalid, and Message says why.
	Hash, Message string
	Invalid       bool
}

// StateOf returns the state of an object of a kind.
func StateOf(kind string, object metav1.Object) ReferenceState {
	ref := referenceTo(kind, object)
	s := ReferenceState{Name: ref.Name, UID: ref.UID, Deleted: object.GetDeletionTimestamp() != nil}
	if group, ok := object.(*v1beta1.MCPGroup); ok {
		s.Phase = group.Status.Phase
		return s
	}
	if s.Generation = ref.Generation; s.Generation == 0 {
		s.ResourceVersion = ref.ResourceVersion
	}
	if config := configs.Read(object); config != nil {
		s.Hash = config.Status.ConfigHash
		s.Message, s.Invalid = foundInvalid(object, config.Status)
	}
	return s
}

// foundInvalid reports whether the status of a config calls the spec of this very generation invalid, and why.
func foundInvalid(object metav1.Object, status *v1beta1.ConfigStatus) (message string, invalid bool) {
	valid := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionValid)
	if valid == nil || valid.Status != metav1.ConditionFalse || valid.ObservedGeneration != object.GetGeneration() {
		return "", false
	}
	return valid.Message, true
}

// States returns the states of all that is referred to and exists, sorted by name.
func (in *References) States() (all []ReferenceState) {
	for ref := range configs.References() {
		if object := in.Objects[ref.Field]; object != nil {
			all = append(all, StateOf(ref.Kind.Name, object))
		}
	}
	for _, bundle := range in.Bundles {
		all = append(all, StateOf(kindConfigMap.Kind, bundle))
	}
	slices.SortFunc(all, func(a, b ReferenceState) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
