// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// MCPTelemetryConfig is where a proxy sends traces and metrics. MCPServers of the namespace share it; each may name its
// own service.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=mcptelemetryconfigs,singular=mcptelemetryconfig,scope=Namespaced,categories=toolhive,shortName=mcpotel
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:deprecatedversion:warning="toolhive.stacklok.dev/v1alpha1 is deprecated; use v1beta1"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.openTelemetry.endpoint"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Tracing",type="boolean",JSONPath=".spec.openTelemetry.tracing.enabled"
// +kubebuilder:printcolumn:name="Metrics",type="boolean",JSONPath=".spec.openTelemetry.metrics.enabled"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPTelemetryConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec v1beta1.MCPTelemetryConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status v1beta1.ConfigStatus `json:"status,omitempty"`
}

// MCPTelemetryConfigList is a list of MCPTelemetryConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPTelemetryConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPTelemetryConfig `json:"items"`
}
