// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SPIFFEAuthenticationMethod is a kind of SPIFFE credential.
type SPIFFEAuthenticationMethod string

const (
	// SPIFFEAuthenticationMethodX509 is an X.509-SVID.
	SPIFFEAuthenticationMethodX509 SPIFFEAuthenticationMethod = "spiffe_x509"
	// SPIFFEAuthenticationMethodJWT is a JWT-SVID.
	SPIFFEAuthenticationMethodJWT SPIFFEAuthenticationMethod = "spiffe_jwt"
)

// SPIFFEBundleSourceType is where a trust bundle comes from.
type SPIFFEBundleSourceType string

const (
	// SPIFFEBundleSourceTypeEndpoint is a SPIFFE bundle endpoint.
	SPIFFEBundleSourceTypeEndpoint SPIFFEBundleSourceType = "bundle_endpoint"
	// SPIFFEBundleSourceTypeFile is a key of a ConfigMap.
	SPIFFEBundleSourceTypeFile SPIFFEBundleSourceType = "file"
	// SPIFFEBundleSourceTypeWorkloadAPI is the SPIFFE workload API of the node.
	SPIFFEBundleSourceTypeWorkloadAPI SPIFFEBundleSourceType = "workload_api"
)

// SPIFFEBundleEndpointProfile is how the TLS certificate of a bundle endpoint is checked.
type SPIFFEBundleEndpointProfile string

const (
	// SPIFFEBundleEndpointProfileHTTPSWeb checks it against public certificate authorities.
	SPIFFEBundleEndpointProfileHTTPSWeb SPIFFEBundleEndpointProfile = "https_web"
	// SPIFFEBundleEndpointProfileHTTPSSPIFFE checks it against a SPIFFE root that is distributed separately.
	SPIFFEBundleEndpointProfileHTTPSSPIFFE SPIFFEBundleEndpointProfile = "https_spiffe"
)

// SPIFFETrustDomainConfig is a SPIFFE trust domain. ToolHive's proxyrunner does not authenticate SPIFFE workloads yet,
// and refuses to start with one.
type SPIFFETrustDomainConfig struct {
	// name by which clients refer to the domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// trustDomain is the domain itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([a-z0-9_]|[a-z0-9_]([a-z0-9_-]|\.[a-z0-9_-])*[a-z0-9_])$`
	// +required
	TrustDomain string `json:"trustDomain"`
	// methods are the kinds of credentials that are accepted.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=spiffe_x509;spiffe_jwt
	// +listType=set
	// +required
	Methods []SPIFFEAuthenticationMethod `json:"methods"`
	// bundleSource is where the trust bundle comes from.
	// +required
	BundleSource SPIFFEBundleSourceConfig `json:"bundleSource"`
}

// SPIFFEBundleSourceConfig is where the trust bundle of a domain comes from.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'bundle_endpoint' ? has(self.endpoint) : !has(self.endpoint)",message="endpoint configuration must be set if and only if type is 'bundle_endpoint'"
// +kubebuilder:validation:XValidation:rule="self.type == 'file' ? has(self.file) : !has(self.file)",message="file configuration must be set if and only if type is 'file'"
// +kubebuilder:validation:XValidation:rule="self.type == 'workload_api' ? has(self.workloadAPI) : !has(self.workloadAPI)",message="workloadAPI configuration must be set if and only if type is 'workload_api'"
type SPIFFEBundleSourceConfig struct {
	// type is the kind of source.
	// +kubebuilder:validation:Enum=bundle_endpoint;file;workload_api
	// +required
	Type SPIFFEBundleSourceType `json:"type"`
	// endpoint is the source when type is bundle_endpoint.
	// +optional
	Endpoint *SPIFFEBundleEndpointSourceConfig `json:"endpoint,omitempty"`
	// file is the source when type is file.
	// +optional
	File *SPIFFEFileBundleSourceConfig `json:"file,omitempty"`
	// workloadAPI is the source when type is workload_api.
	// +optional
	WorkloadAPI *SPIFFEWorkloadAPIBundleSourceConfig `json:"workloadAPI,omitempty"`
}

// SPIFFEBundleEndpointSourceConfig is a SPIFFE bundle endpoint.
type SPIFFEBundleEndpointSourceConfig struct {
	// url of the endpoint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	URL string `json:"url"`
	// profile is how the certificate of the endpoint is checked.
	// +kubebuilder:validation:Enum=https_web;https_spiffe
	// +required
	Profile SPIFFEBundleEndpointProfile `json:"profile"`
}

// SPIFFEFileBundleSourceConfig is a trust bundle in a ConfigMap.
type SPIFFEFileBundleSourceConfig struct {
	// configMapName is the name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	ConfigMapName string `json:"configMapName"`
	// configMapKey is the key in the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	// +kubebuilder:validation:XValidation:rule="self != '.' && !self.startsWith('..')"
	// +required
	ConfigMapKey string `json:"configMapKey"`
}

// SPIFFEWorkloadAPIBundleSourceConfig is the SPIFFE workload API of the node. It has no settings.
type SPIFFEWorkloadAPIBundleSourceConfig struct{}

// SPIFFEClientConfig makes SPIFFE workloads an OAuth client.
//
// +kubebuilder:validation:XValidation:rule="self.principalPattern.split('/').all(segment, segment != '.' && segment != '..')",message="principalPattern path must not contain . or .. segments"
type SPIFFEClientConfig struct {
	// trustDomainRef is the name of a trust domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	TrustDomainRef string `json:"trustDomainRef"`
	// principalPattern is a SPIFFE ID, or one that ends in /*.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^spiffe://[a-z0-9._-]+((/[a-zA-Z0-9._-]+)+(/\*)?|/\*)$`
	// +required
	PrincipalPattern string `json:"principalPattern"`
	// clientId of the OAuth client.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ClientID string `json:"clientId"`
	// methods are the kinds of credentials that the client may present.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=spiffe_x509;spiffe_jwt
	// +listType=set
	// +required
	Methods []SPIFFEAuthenticationMethod `json:"methods"`
	// resources that the client may ask for.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^https?://[^@#[:space:]]+$`
	// +listType=set
	// +optional
	Resources []string `json:"resources,omitempty"`
	// audiences that the client may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=set
	// +required
	Audiences []string `json:"audiences"`
	// scopes that the client may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +required
	Scopes []string `json:"scopes"`
}
