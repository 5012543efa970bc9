// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MCPAuthzConfig is an authorization policy that MCPServers of the namespace share.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcpauthzconfigs,singular=mcpauthzconfig,scope=Namespaced,categories=toolhive,shortName=authzcfg
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPAuthzConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec MCPAuthzConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ConfigStatus `json:"status,omitempty"`
}

// MCPAuthzConfigList is a list of MCPAuthzConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPAuthzConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPAuthzConfig `json:"items"`
}

const (
	// AuthzTypeCedar is a policy in Cedar's language, which the proxy evaluates.
	AuthzTypeCedar = "cedarv1"
	// AuthzTypeHTTP is a policy decision point that the proxy asks over HTTP.
	AuthzTypeHTTP = "httpv1"
)

// MCPAuthzConfigSpec is an authorization policy.
type MCPAuthzConfigSpec struct {
	// type is the kind of policy: cedarv1 or httpv1.
	// +kubebuilder:validation:MinLength=1
	// +required
	Type string `json:"type"`
	// config is the policy itself. For cedarv1 it has policies, entities_json, primary_upstream_provider,
	// group_claim_name, role_claim_name, group_entity_type and multi_valued_claims; for httpv1 it has http, context and
	// claim_mapping.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +required
	Config runtime.RawExtension `json:"config"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}
