// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// MCPGroup is a set of MCPServers of its namespace. Each of them names the group; the group's status lists them.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=mcpgroups,singular=mcpgroup,scope=Namespaced,categories=toolhive,shortName=mcpg
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:deprecatedversion:warning="toolhive.stacklok.dev/v1alpha1 is deprecated; use v1beta1"
// +kubebuilder:printcolumn:name="Servers",type="integer",JSONPath=".status.serverCount"
// +kubebuilder:printcolumn:name="Proxies",type="integer",JSONPath=".status.remoteProxyCount"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Checked",type="string",JSONPath=".status.conditions[?(@.type=='MCPServersChecked')].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPGroup struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec v1beta1.MCPGroupSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status v1beta1.MCPGroupStatus `json:"status,omitempty"`
}

// MCPGroupList is a list of MCPGroups.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPGroup `json:"items"`
}
