// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPTelemetryConfig is where a proxy sends traces and metrics. MCPServers of the namespace share it; each may name its
// own service.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcptelemetryconfigs,singular=mcptelemetryconfig,scope=Namespaced,categories=toolhive,shortName=mcpotel
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
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
	Spec MCPTelemetryConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ConfigStatus `json:"status,omitempty"`
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

// MCPTelemetryConfigSpec is where telemetry goes.
type MCPTelemetryConfigSpec struct {
	// openTelemetry is where traces and metrics are sent.
	// +optional
	OpenTelemetry *MCPTelemetryOTelConfig `json:"openTelemetry,omitempty"`
	// prometheus makes the proxy serve metrics.
	// +optional
	Prometheus *PrometheusConfig `json:"prometheus,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// MCPTelemetryOTelConfig is where OpenTelemetry data goes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || !has(self.sensitiveHeaders) || self.sensitiveHeaders.all(sh, !(sh.name in self.headers))",message="a header name cannot appear in both headers and sensitiveHeaders"
type MCPTelemetryOTelConfig struct {
	// enabled turns OpenTelemetry on.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// endpoint is the OTLP endpoint, as host:port or URL. It needs tracing or metrics.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// insecure sends over http.
	// +kubebuilder:default=false
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// headers are sent with each request to the endpoint.
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
	// sensitiveHeaders are headers whose values are in Secrets.
	// +listType=map
	// +listMapKey=name
	// +optional
	SensitiveHeaders []SensitiveHeader `json:"sensitiveHeaders,omitempty"`
	// resourceAttributes describe what the telemetry is about, such as deployment.environment.
	// +optional
	ResourceAttributes map[string]string `json:"resourceAttributes,omitempty"`
	// metrics configures metrics.
	// +optional
	Metrics *OpenTelemetryMetricsConfig `json:"metrics,omitempty"`
	// tracing configures traces.
	// +optional
	Tracing *OpenTelemetryTracingConfig `json:"tracing,omitempty"`
	// useLegacyAttributes emits the names of attributes that ToolHive used before the semantic conventions for MCP, too.
	// +kubebuilder:default=true
	// +optional
	UseLegacyAttributes bool `json:"useLegacyAttributes"`
	// caBundleRef names the certificate authorities to trust, for the endpoint. It excludes insecure.
	// +optional
	CABundleRef *CABundleSource `json:"caBundleRef,omitempty"`
}

// SensitiveHeader is a header whose value is in a Secret.
type SensitiveHeader struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
	// secretKeyRef is the key of a Secret that holds the value.
	// +required
	SecretKeyRef SecretKeyRef `json:"secretKeyRef"`
}

// OpenTelemetryMetricsConfig is about metrics that the proxy sends.
type OpenTelemetryMetricsConfig struct {
	// enabled sends metrics.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// OpenTelemetryTracingConfig is about traces that the proxy sends.
type OpenTelemetryTracingConfig struct {
	// enabled sends traces.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// samplingRate is the part of the traces that is sent, from 0 to 1.
	// +kubebuilder:default="0.05"
	// +kubebuilder:validation:Pattern=`^(0(\.\d+)?|1(\.0+)?)$`
	// +optional
	SamplingRate string `json:"samplingRate,omitempty"`
}

// PrometheusConfig is about metrics that Prometheus scrapes.
type PrometheusConfig struct {
	// enabled serves metrics on /metrics, on a port of its own (9464).
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// metricsOnTransportPort serves /metrics on the port of the proxy as well. When unset, ToolHive's default holds,
	// which is true and is to become false.
	// +optional
	MetricsOnTransportPort *bool `json:"metricsOnTransportPort,omitempty"`
}
