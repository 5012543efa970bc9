// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types in this file have the shape of the core types of the same names. The core types would make these API
// types depend on more than apimachinery.

// Toleration lets a pod run on nodes with a taint.
type Toleration struct {
	// key of the taint; with operator Exists an empty key matches every taint.
	// +optional
	Key string `json:"key,omitempty"`
	// operator compares the value: Exists or Equal (the default).
	// +optional
	Operator string `json:"operator,omitempty"`
	// value of the taint, with operator Equal.
	// +optional
	Value string `json:"value,omitempty"`
	// effect of the taint: NoSchedule, PreferNoSchedule or NoExecute; empty matches all.
	// +optional
	Effect string `json:"effect,omitempty"`
	// tolerationSeconds is how long a taint with effect NoExecute is tolerated; for ever when unset.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// Affinity are scheduling constraints of a pod.
type Affinity struct {
	// nodeAffinity chooses nodes by their labels.
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`
	// podAffinity places the pod near other pods.
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`
	// podAntiAffinity keeps the pod away from other pods.
	// +optional
	PodAntiAffinity *PodAntiAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity chooses nodes by their labels.
type NodeAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution must hold when the pod is scheduled.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution are preferences with weights.
	// +listType=atomic
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector matches a node that matches any of its terms.
//
// +structType=atomic
type NodeSelector struct {
	// nodeSelectorTerms, of which one must match.
	// +listType=atomic
	// +required
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm matches a node that meets all of its requirements; without any it matches none.
//
// +structType=atomic
type NodeSelectorTerm struct {
	// matchExpressions are about labels of the node.
	// +listType=atomic
	// +optional
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`
	// matchFields are about fields of the node.
	// +listType=atomic
	// +optional
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty"`
}

// NodeSelectorRequirement is one requirement of a node.
type NodeSelectorRequirement struct {
	// key of the label or the field.
	// +required
	Key string `json:"key"`
	// operator is In, NotIn, Exists, DoesNotExist, Gt or Lt.
	// +required
	Operator string `json:"operator"`
	// values to compare with.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// PreferredSchedulingTerm is a preference for nodes.
type PreferredSchedulingTerm struct {
	// weight of the preference, from 1 to 100.
	// +required
	Weight int32 `json:"weight"`
	// preference that a node meets.
	// +required
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAffinity places a pod near other pods.
type PodAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution must all hold when the pod is scheduled.
	// +listType=atomic
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution are preferences with weights.
	// +listType=atomic
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PodAntiAffinity keeps a pod away from other pods.
type PodAntiAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution must all hold when the pod is scheduled.
	// +listType=atomic
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution are preferences with weights.
	// +listType=atomic
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// WeightedPodAffinityTerm is a preference about other pods.
type WeightedPodAffinityTerm struct {
	// weight of the preference, from 1 to 100.
	// +required
	Weight int32 `json:"weight"`
	// podAffinityTerm selects the other pods.
	// +required
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}

// PodAffinityTerm selects pods, and a topology in which they count as near.
type PodAffinityTerm struct {
	// labelSelector selects the pods.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// namespaces of the pods; the pod's own when neither these nor a namespaceSelector are set.
	// +listType=atomic
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// topologyKey is the label of nodes by whose value they count as one place.
	// +required
	TopologyKey string `json:"topologyKey"`
	// namespaceSelector selects namespaces of the pods.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// matchLabelKeys are labels of the pod itself whose values the other pods must have.
	// +listType=atomic
	// +optional
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
	// mismatchLabelKeys are labels of the pod itself whose values the other pods must not have.
	// +listType=atomic
	// +optional
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty"`
}
