// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPGroup is a set of MCPServers of its namespace. Each of them names the group; the group's status lists them.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcpgroups,singular=mcpgroup,scope=Namespaced,categories=toolhive,shortName=mcpg
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
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
	Spec MCPGroupSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status MCPGroupStatus `json:"status,omitempty"`
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

// MCPGroupSpec describes a group.
type MCPGroupSpec struct {
	// description is for people to read.
	// +optional
	Description string `json:"description,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// MCPGroupPhase is a summary of an MCPGroup in one word.
//
// +kubebuilder:validation:Enum=Ready;Pending;Failed
type MCPGroupPhase string

const (
	// MCPGroupPhaseReady means that the group's members are known.
	MCPGroupPhaseReady MCPGroupPhase = "Ready"
	// MCPGroupPhasePending means that no operator has listed the group's members yet. It is the default, and Freehold never writes it.
	MCPGroupPhasePending MCPGroupPhase = "Pending"
	// MCPGroupPhaseFailed means that ToolHive's operator cannot list the group's members. Freehold never writes it: it reports that by
	// the condition MCPServersChecked.
	MCPGroupPhaseFailed MCPGroupPhase = "Failed"
)

// MCPGroupStatus lists a group's members.
type MCPGroupStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 while no operator has looked at the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is a summary in one word.
	// +kubebuilder:default=Pending
	// +optional
	Phase MCPGroupPhase `json:"phase,omitempty"`
	// servers are the names of the MCPServers of the group.
	// +listType=set
	// +optional
	Servers []string `json:"servers,omitempty"`
	// serverCount is the number of servers.
	// +optional
	ServerCount int32 `json:"serverCount,omitempty"`
	// remoteProxies are the names of the MCPRemoteProxies of the group.
	// +listType=set
	// +optional
	RemoteProxies []string `json:"remoteProxies,omitempty"`
	// remoteProxyCount is the number of remoteProxies.
	// +optional
	RemoteProxyCount int32 `json:"remoteProxyCount,omitempty"`
	// entries are the names of the MCPServerEntries of the group.
	// +listType=set
	// +optional
	Entries []string `json:"entries,omitempty"`
	// entryCount is the number of entries.
	// +optional
	EntryCount int32 `json:"entryCount,omitempty"`
	// conditions, each of one type. Other writers may add conditions of their own types.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
