// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPExternalAuthConfig is how requests are authenticated on their way to a backend, or an authorization server that runs
// inside the proxy. MCPServers of the namespace share it.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcpexternalauthconfigs,singular=mcpexternalauthconfig,scope=Namespaced,categories=toolhive,shortName=extauth;mcpextauth
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPExternalAuthConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec MCPExternalAuthConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ConfigStatus `json:"status,omitempty"`
}

// MCPExternalAuthConfigList is a list of MCPExternalAuthConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPExternalAuthConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPExternalAuthConfig `json:"items"`
}

// ExternalAuthType is a way of authenticating requests to a backend.
type ExternalAuthType string

const (
	// ExternalAuthTypeTokenExchange exchanges the client's token for another one (RFC 8693).
	ExternalAuthTypeTokenExchange ExternalAuthType = "tokenExchange"
	// ExternalAuthTypeHeaderInjection adds a header with a value from a Secret.
	ExternalAuthTypeHeaderInjection ExternalAuthType = "headerInjection"
	// ExternalAuthTypeBearerToken sends a token from a Secret. It is for remote MCP servers.
	ExternalAuthTypeBearerToken ExternalAuthType = "bearerToken"
	// ExternalAuthTypeUnauthenticated sends requests as they are.
	ExternalAuthTypeUnauthenticated ExternalAuthType = "unauthenticated"
	// ExternalAuthTypeEmbeddedAuthServer runs an OAuth authorization server inside the proxy.
	ExternalAuthTypeEmbeddedAuthServer ExternalAuthType = "embeddedAuthServer"
	// ExternalAuthTypeAWSSts signs requests with temporary credentials of AWS.
	ExternalAuthTypeAWSSts ExternalAuthType = "awsSts"
	// ExternalAuthTypeUpstreamInject sends a token that an embedded authorization server has obtained from its upstream.
	ExternalAuthTypeUpstreamInject ExternalAuthType = "upstreamInject"
	// ExternalAuthTypeOBO exchanges tokens on behalf of users of Microsoft Entra. Only ToolHive's enterprise build does it.
	ExternalAuthTypeOBO ExternalAuthType = "obo"
	// ExternalAuthTypeXAA exchanges an ID token for an identity assertion, and that for an access token.
	ExternalAuthTypeXAA ExternalAuthType = "xaa"
)

// MCPExternalAuthConfigSpec is one way of authenticating requests to a backend, with its settings.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'tokenExchange' ? has(self.tokenExchange) : !has(self.tokenExchange)",message="tokenExchange configuration must be set if and only if type is 'tokenExchange'"
// +kubebuilder:validation:XValidation:rule="self.type == 'headerInjection' ? has(self.headerInjection) : !has(self.headerInjection)",message="headerInjection configuration must be set if and only if type is 'headerInjection'"
// +kubebuilder:validation:XValidation:rule="self.type == 'bearerToken' ? has(self.bearerToken) : !has(self.bearerToken)",message="bearerToken configuration must be set if and only if type is 'bearerToken'"
// +kubebuilder:validation:XValidation:rule="self.type == 'embeddedAuthServer' ? has(self.embeddedAuthServer) : !has(self.embeddedAuthServer)",message="embeddedAuthServer configuration must be set if and only if type is 'embeddedAuthServer'"
// +kubebuilder:validation:XValidation:rule="self.type == 'awsSts' ? has(self.awsSts) : !has(self.awsSts)",message="awsSts configuration must be set if and only if type is 'awsSts'"
// +kubebuilder:validation:XValidation:rule="self.type == 'upstreamInject' ? has(self.upstreamInject) : !has(self.upstreamInject)",message="upstreamInject configuration must be set if and only if type is 'upstreamInject'"
// +kubebuilder:validation:XValidation:rule="self.type == 'obo' ? has(self.obo) : !has(self.obo)",message="obo configuration must be set if and only if type is 'obo'"
// +kubebuilder:validation:XValidation:rule="self.type == 'xaa' ? has(self.xaa) : !has(self.xaa)",message="xaa configuration must be set if and only if type is 'xaa'"
// +kubebuilder:validation:XValidation:rule="self.type == 'unauthenticated' ? (!has(self.tokenExchange) && !has(self.headerInjection) && !has(self.bearerToken) && !has(self.embeddedAuthServer) && !has(self.awsSts) && !has(self.upstreamInject) && !has(self.obo) && !has(self.xaa)) : true",message="no configuration must be set when type is 'unauthenticated'"
type MCPExternalAuthConfigSpec struct {
	// type is the way of authenticating. The field of the same name has its settings.
	// +kubebuilder:validation:Enum=tokenExchange;headerInjection;bearerToken;unauthenticated;embeddedAuthServer;awsSts;upstreamInject;obo;xaa
	// +required
	Type ExternalAuthType `json:"type"`
	// tokenExchange exchanges the client's token.
	// +optional
	TokenExchange *TokenExchangeConfig `json:"tokenExchange,omitempty"`
	// headerInjection adds a header.
	// +optional
	HeaderInjection *HeaderInjectionConfig `json:"headerInjection,omitempty"`
	// bearerToken sends a token from a Secret.
	// +optional
	BearerToken *BearerTokenConfig `json:"bearerToken,omitempty"`
	// embeddedAuthServer runs an authorization server inside the proxy.
	// +optional
	EmbeddedAuthServer *EmbeddedAuthServerConfig `json:"embeddedAuthServer,omitempty"`
	// awsSts signs requests with temporary credentials of AWS.
	// +optional
	AWSSts *AWSStsConfig `json:"awsSts,omitempty"`
	// upstreamInject sends a token that an embedded authorization server has obtained.
	// +optional
	UpstreamInject *UpstreamInjectSpec `json:"upstreamInject,omitempty"`
	// obo exchanges tokens on behalf of users of Microsoft Entra.
	// +optional
	OBO *OBOConfig `json:"obo,omitempty"`
	// xaa exchanges an ID token across two identity providers.
	// +optional
	XAA *XAASpec `json:"xaa,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// TokenExchangeConfig is the exchange of the client's token at an authorization server (RFC 8693).
type TokenExchangeConfig struct {
	// tokenUrl is the endpoint of the authorization server.
	// +required
	TokenURL string `json:"tokenUrl"`
	// clientId of the proxy at the authorization server.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// clientSecretRef is the key of a Secret that holds the proxy's client secret.
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty"`
	// audience of the token that is asked for.
	// +required
	Audience string `json:"audience"`
	// scopes of the token that is asked for.
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// subjectTokenType is the type of the client's token: access_token, id_token or jwt, or the URN of one of them.
	// +kubebuilder:validation:Pattern=`^(access_token|id_token|jwt|urn:ietf:params:oauth:token-type:(access_token|id_token|jwt))?$`
	// +optional
	SubjectTokenType string `json:"subjectTokenType,omitempty"`
	// externalTokenHeaderName is the header that carries the new token; when unset, the token replaces that in
	// Authorization.
	// +optional
	ExternalTokenHeaderName string `json:"externalTokenHeaderName,omitempty"`
	// subjectProviderName selects the upstream whose token is exchanged. Only a VirtualMCPServer reads it.
	// +optional
	SubjectProviderName string `json:"subjectProviderName,omitempty"`
}

// HeaderInjectionConfig is a header with a value from a Secret.
type HeaderInjectionConfig struct {
	// headerName is the name of the header.
	// +kubebuilder:validation:MinLength=1
	// +required
	HeaderName string `json:"headerName"`
	// valueSecretRef is the key of a Secret that holds the value.
	// +required
	ValueSecretRef SecretKeyRef `json:"valueSecretRef"`
}

// BearerTokenConfig is a token from a Secret.
type BearerTokenConfig struct {
	// tokenSecretRef is the key of a Secret that holds the token.
	// +required
	TokenSecretRef SecretKeyRef `json:"tokenSecretRef"`
}

// UpstreamInjectSpec selects the upstream whose token is sent.
type UpstreamInjectSpec struct {
	// providerName is the name of the upstream.
	// +kubebuilder:validation:MinLength=1
	// +required
	ProviderName string `json:"providerName"`
}
