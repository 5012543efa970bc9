// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPToolConfig selects and renames the tools that a proxy offers. MCPServers of the namespace share it.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcptoolconfigs,singular=mcptoolconfig,scope=Namespaced,categories=toolhive,shortName=tc;toolconfig
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPToolConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec MCPToolConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ConfigStatus `json:"status,omitempty"`
}

// MCPToolConfigList is a list of MCPToolConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPToolConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPToolConfig `json:"items"`
}

// MCPToolConfigSpec selects and renames tools. It is no authorization policy.
type MCPToolConfigSpec struct {
	// toolsFilter are the tools that clients may see and call, by the names that clients see; all of them when empty.
	// +listType=set
	// +optional
	ToolsFilter []string `json:"toolsFilter,omitempty"`
	// toolsOverride is what clients see of a tool, by the name that the MCP server gives it.
	// +optional
	ToolsOverride map[string]ToolOverride `json:"toolsOverride,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// ToolOverride is what clients see of a tool. It needs a name or a description.
type ToolOverride struct {
	// name that clients see.
	// +optional
	Name string `json:"name,omitempty"`
	// description that clients see.
	// +optional
	Description string `json:"description,omitempty"`
	// annotations replaces hints of the tool. ToolHive's proxyrunner ignores it.
	// +optional
	Annotations *ToolAnnotationsOverride `json:"annotations,omitempty"`
}

// ToolAnnotationsOverride replaces hints of a tool. A field that is not set leaves the hint as it is.
type ToolAnnotationsOverride struct {
	// title for people to read.
	// +optional
	Title *string `json:"title,omitempty"`
	// readOnlyHint says that the tool changes nothing.
	// +optional
	ReadOnlyHint *bool `json:"readOnlyHint,omitempty"`
	// destructiveHint says that the tool may destroy something.
	// +optional
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	// idempotentHint says that calling the tool twice is like calling it once.
	// +optional
	IdempotentHint *bool `json:"idempotentHint,omitempty"`
	// openWorldHint says that the tool reaches the outside world.
	// +optional
	OpenWorldHint *bool `json:"openWorldHint,omitempty"`
}
