// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPOIDCConfig is how a proxy authenticates its clients: the issuer of their tokens, and how the proxy gets the issuer's
// keys. MCPServers of the namespace share it; each names its own audience.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcpoidcconfigs,singular=mcpoidcconfig,scope=Namespaced,categories=toolhive,shortName=mcpoidc
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:printcolumn:name="Source",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPOIDCConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec MCPOIDCConfigSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ConfigStatus `json:"status,omitempty"`
}

// MCPOIDCConfigList is a list of MCPOIDCConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPOIDCConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPOIDCConfig `json:"items"`
}

// MCPOIDCConfigSourceType is where tokens come from.
type MCPOIDCConfigSourceType string

const (
	// MCPOIDCConfigTypeKubernetesServiceAccount are tokens that a Kubernetes API server issues to ServiceAccounts.
	MCPOIDCConfigTypeKubernetesServiceAccount MCPOIDCConfigSourceType = "kubernetesServiceAccount"
	// MCPOIDCConfigTypeInline are tokens of an issuer that the configuration names.
	MCPOIDCConfigTypeInline MCPOIDCConfigSourceType = "inline"
)

// MCPOIDCConfigSpec is how clients are authenticated.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'kubernetesServiceAccount' ? has(self.kubernetesServiceAccount) : !has(self.kubernetesServiceAccount)",message="kubernetesServiceAccount must be set when type is 'kubernetesServiceAccount', and must not be set otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'inline' ? has(self.inline) : !has(self.inline)",message="inline must be set when type is 'inline', and must not be set otherwise"
type MCPOIDCConfigSpec struct {
	// type is the source of the tokens.
	// +kubebuilder:validation:Enum=kubernetesServiceAccount;inline
	// +required
	Type MCPOIDCConfigSourceType `json:"type"`
	// kubernetesServiceAccount accepts tokens of ServiceAccounts when type is kubernetesServiceAccount.
	// +optional
	KubernetesServiceAccount *KubernetesServiceAccountOIDCConfig `json:"kubernetesServiceAccount,omitempty"`
	// inline accepts tokens of an issuer when type is inline.
	// +optional
	Inline *InlineOIDCSharedConfig `json:"inline,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// KubernetesServiceAccountOIDCConfig accepts tokens that a Kubernetes API server issues to ServiceAccounts, for the
// MCPServer's audience. The proxy accepts those of every ServiceAccount of every namespace.
type KubernetesServiceAccountOIDCConfig struct {
	// serviceAccount has no effect: the proxy accepts tokens of every ServiceAccount.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// namespace has no effect: the proxy accepts tokens of every ServiceAccount.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// issuer of the tokens.
	// +kubebuilder:default="https://kubernetes.default.svc"
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// jwksUrl is where the issuer's keys are; OIDC discovery finds it when unset.
	// +optional
	JWKSURL string `json:"jwksUrl,omitempty"`
	// introspectionUrl is where opaque tokens are checked; OIDC discovery finds it when unset.
	// +optional
	IntrospectionURL string `json:"introspectionUrl,omitempty"`
	// useClusterAuth makes the proxy trust the cluster's certificate authority and present its own ServiceAccount's token
	// when it fetches the keys; true when unset.
	// +optional
	UseClusterAuth *bool `json:"useClusterAuth,omitempty"`
}

// InlineOIDCSharedConfig accepts tokens of the issuer that it names.
type InlineOIDCSharedConfig struct {
	// issuer of the tokens, an https URL.
	// +required
	Issuer string `json:"issuer"`
	// jwksUrl is where the issuer's keys are; OIDC discovery finds it when unset.
	// +optional
	JWKSURL string `json:"jwksUrl,omitempty"`
	// introspectionUrl is where opaque tokens are checked; OIDC discovery finds it when unset.
	// +optional
	IntrospectionURL string `json:"introspectionUrl,omitempty"`
	// clientId of the proxy at the issuer.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// clientSecretRef is the key of a Secret that holds the proxy's client secret.
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty"`
	// caBundleRef names the certificate authorities to trust, for the issuer's endpoints.
	// +optional
	CABundleRef *CABundleSource `json:"caBundleRef,omitempty"`
	// jwksAuthTokenPath is a file in the proxy's container whose token the proxy presents when it fetches the keys. The
	// proxy reads it once, when it starts.
	// +optional
	JWKSAuthTokenPath string `json:"jwksAuthTokenPath,omitempty"`
	// jwksAllowPrivateIP lets the proxy fetch keys from private addresses.
	// +kubebuilder:default=false
	// +optional
	JWKSAllowPrivateIP bool `json:"jwksAllowPrivateIP,omitempty"`
	// protectedResourceAllowPrivateIP has no effect on an MCPServer.
	// +kubebuilder:default=false
	// +optional
	ProtectedResourceAllowPrivateIP bool `json:"protectedResourceAllowPrivateIP,omitempty"`
	// insecureAllowHTTP accepts issuer and jwksUrl with http. It is for tests.
	// +kubebuilder:default=false
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHTTP,omitempty"`
}
