// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// UpstreamProviderType is the protocol of an upstream identity provider.
type UpstreamProviderType string

const (
	// UpstreamProviderTypeOIDC is a provider whose endpoints OIDC discovery finds.
	UpstreamProviderTypeOIDC UpstreamProviderType = "oidc"
	// UpstreamProviderTypeOAuth2 is a provider whose endpoints are configured.
	UpstreamProviderTypeOAuth2 UpstreamProviderType = "oauth2"
)

// UpstreamProviderConfig is an identity provider at which users log in.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'oidc' ? (has(self.oidcConfig) && !has(self.oauth2Config)) : self.type == 'oauth2' ? (has(self.oauth2Config) && !has(self.oidcConfig)) : false",message="type must be 'oidc' or 'oauth2'; oidcConfig must be set when type is 'oidc' and oauth2Config must be set when type is 'oauth2' (and the other must not be set)"
type UpstreamProviderConfig struct {
	// name of the upstream.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// type is its protocol.
	// +kubebuilder:validation:Enum=oidc;oauth2
	// +required
	Type UpstreamProviderType `json:"type"`
	// oidcConfig are its settings when type is oidc.
	// +optional
	OIDCConfig *OIDCUpstreamConfig `json:"oidcConfig,omitempty"`
	// oauth2Config are its settings when type is oauth2.
	// +optional
	OAuth2Config *OAuth2UpstreamConfig `json:"oauth2Config,omitempty"`
}

// OIDCUpstreamConfig is an identity provider whose endpoints OIDC discovery finds.
//
// +kubebuilder:validation:XValidation:rule="(has(self.clientId) && size(self.clientId) > 0) ? !has(self.dcrConfig) : has(self.dcrConfig)",message="exactly one of clientId or dcrConfig must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.dcrConfig) && has(self.clientSecretRef))",message="clientSecretRef must not be set when dcrConfig is set; the client_secret is obtained at runtime via Dynamic Client Registration"
// +kubebuilder:validation:XValidation:rule="!(has(self.dcrConfig) && has(self.dcrConfig.discoveryUrl) && has(self.dcrConfig.registrationEndpoint))",message="at most one of discoveryUrl or registrationEndpoint may be set"
type OIDCUpstreamConfig struct {
	// issuerUrl is the URL of the issuer.
	// +kubebuilder:validation:Pattern=`^https://.*$`
	// +required
	IssuerURL string `json:"issuerUrl"`
	// clientId at the upstream. Without it, dcrConfig must be set.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// dcrConfig registers a client at the upstream.
	// +optional
	DCRConfig *DCRUpstreamConfig `json:"dcrConfig,omitempty"`
	// clientSecretRef is the key of a Secret that holds the client secret.
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty"`
	// redirectUri is where the upstream sends users back to; the MCPServer's resourceUrl followed by /oauth/callback when
	// unset. Its host must be that of the authorization endpoint.
	// +optional
	RedirectURI string `json:"redirectUri,omitempty"`
	// scopes to ask for; openid and offline_access when empty.
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// userInfoOverride replaces the user info endpoint that discovery finds.
	// +optional
	UserInfoOverride *UserInfoConfig `json:"userInfoOverride,omitempty"`
	// additionalAuthorizationParams are added to authorization requests.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	AdditionalAuthorizationParams map[string]string `json:"additionalAuthorizationParams,omitempty"`
	// additionalTokenParams are added to token requests.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	AdditionalTokenParams map[string]string `json:"additionalTokenParams,omitempty"`
	// omitScopeOnRefresh leaves scopes out when a token is refreshed.
	// +optional
	OmitScopeOnRefresh bool `json:"omitScopeOnRefresh,omitempty"`
	// subjectClaim is the claim of the ID token that identifies a user; sub when empty. A change makes other users of
	// all.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([a-zA-Z_][a-zA-Z0-9_]*)?$`
	// +optional
	SubjectClaim string `json:"subjectClaim,omitempty"`
	// caBundleRef names certificate authorities to trust besides those of the system.
	// +optional
	CABundleRef *CABundleSource `json:"caBundleRef,omitempty"`
	// allowPrivateIPs lets the proxy connect to private addresses.
	// +optional
	AllowPrivateIPs bool `json:"allowPrivateIPs,omitempty"`
}

// OAuth2UpstreamConfig is an identity provider whose endpoints are configured.
//
// +kubebuilder:validation:XValidation:rule="(has(self.clientId) && size(self.clientId) > 0) ? !has(self.dcrConfig) : has(self.dcrConfig)",message="exactly one of clientId or dcrConfig must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.dcrConfig) || (has(self.dcrConfig.discoveryUrl) != has(self.dcrConfig.registrationEndpoint))",message="exactly one of discoveryUrl or registrationEndpoint must be set when dcrConfig is set"
// +kubebuilder:validation:XValidation:rule="!(has(self.dcrConfig) && has(self.clientSecretRef))",message="clientSecretRef must not be set when dcrConfig is set; the client_secret is obtained at runtime via Dynamic Client Registration"
type OAuth2UpstreamConfig struct {
	// authorizationEndpoint is where users log in.
	// +kubebuilder:validation:Pattern=`^https?://.*$`
	// +required
	AuthorizationEndpoint string `json:"authorizationEndpoint"`
	// tokenEndpoint is where tokens are issued.
	// +kubebuilder:validation:Pattern=`^https?://.*$`
	// +required
	TokenEndpoint string `json:"tokenEndpoint"`
	// userInfo is where the user's identity is read. Without it and identityFromToken, users have no name.
	// +optional
	UserInfo *UserInfoConfig `json:"userInfo,omitempty"`
	// clientId at the upstream. Without it, dcrConfig must be set.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// clientSecretRef is the key of a Secret that holds the client secret.
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty"`
	// tokenEndpointAuthMethod is how the client presents its secret.
	// +kubebuilder:validation:Enum=none;client_secret_basic;client_secret_post
	// +optional
	TokenEndpointAuthMethod string `json:"tokenEndpointAuthMethod,omitempty"`
	// redirectUri is where the upstream sends users back to; the MCPServer's resourceUrl followed by /oauth/callback when
	// unset. Its host must be that of the authorization endpoint.
	// +optional
	RedirectURI string `json:"redirectUri,omitempty"`
	// scopes to ask for.
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// tokenResponseMapping says where the fields of the token response are.
	// +optional
	TokenResponseMapping *TokenResponseMapping `json:"tokenResponseMapping,omitempty"`
	// identityFromToken reads the user's identity from the token response.
	// +optional
	IdentityFromToken *IdentityFromTokenConfig `json:"identityFromToken,omitempty"`
	// additionalAuthorizationParams are added to authorization requests.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	AdditionalAuthorizationParams map[string]string `json:"additionalAuthorizationParams,omitempty"`
	// additionalTokenParams are added to token requests.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	AdditionalTokenParams map[string]string `json:"additionalTokenParams,omitempty"`
	// omitScopeOnRefresh leaves scopes out when a token is refreshed.
	// +optional
	OmitScopeOnRefresh bool `json:"omitScopeOnRefresh,omitempty"`
	// caBundleRef names certificate authorities to trust besides those of the system.
	// +optional
	CABundleRef *CABundleSource `json:"caBundleRef,omitempty"`
	// insecureAllowHTTP accepts endpoints with http. It is for tests.
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHTTP,omitempty"`
	// allowPrivateIPs lets the proxy connect to private addresses.
	// +optional
	AllowPrivateIPs bool `json:"allowPrivateIPs,omitempty"`
	// dcrConfig registers a client at the upstream.
	// +optional
	DCRConfig *DCRUpstreamConfig `json:"dcrConfig,omitempty"`
}

// DCRUpstreamConfig makes the authorization server register itself as a client of the upstream (RFC 7591).
//
// +kubebuilder:validation:XValidation:rule="!(has(self.discoveryUrl) && has(self.registrationEndpoint))",message="at most one of discoveryUrl or registrationEndpoint may be set"
type DCRUpstreamConfig struct {
	// discoveryUrl is the metadata document that names the registration endpoint.
	// +kubebuilder:validation:Pattern=`^https://[^\s?#]+[^/\s?#]$`
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	DiscoveryURL string `json:"discoveryUrl,omitempty"`
	// registrationEndpoint is the registration endpoint. It excludes discoveryUrl.
	// +kubebuilder:validation:Pattern=`^https://[^\s?#]+[^/\s?#]$`
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	RegistrationEndpoint string `json:"registrationEndpoint,omitempty"`
	// rotationKey is any text; a change makes the proxy register again.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RotationKey string `json:"rotationKey,omitempty"`
	// registrationProbe is how the proxy checks, when it starts, that its registration still holds; tokenEndpoint when
	// unset.
	// +kubebuilder:validation:Enum=tokenEndpoint;authorizationEndpoint;none
	// +optional
	RegistrationProbe string `json:"registrationProbe,omitempty"`
	// registrationProbeInterval is how often the check is repeated, as a Go duration of at least 1m; never when unset.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="registrationProbeInterval must be at least 1m"
	// +optional
	RegistrationProbeInterval string `json:"registrationProbeInterval,omitempty"`
	// initialAccessTokenRef is the key of a Secret that holds the token for the registration endpoint.
	// +optional
	InitialAccessTokenRef *SecretKeyRef `json:"initialAccessTokenRef,omitempty"`
	// softwareId identifies the software that registers.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	SoftwareID string `json:"softwareId,omitempty"`
	// softwareStatement is a signed statement about the software. It is no secret.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	SoftwareStatement string `json:"softwareStatement,omitempty"`
}

// UserInfoConfig is how the user's identity is read from an endpoint of the upstream.
type UserInfoConfig struct {
	// endpointUrl is the URL of the endpoint.
	// +kubebuilder:validation:Pattern=`^https?://.*$`
	// +required
	EndpointURL string `json:"endpointUrl"`
	// httpMethod is GET when unset.
	// +kubebuilder:validation:Enum=GET;POST
	// +optional
	HTTPMethod string `json:"httpMethod,omitempty"`
	// additionalHeaders are sent with the request.
	// +optional
	AdditionalHeaders map[string]string `json:"additionalHeaders,omitempty"`
	// fieldMapping names the fields of the answer.
	// +optional
	FieldMapping *UserInfoFieldMapping `json:"fieldMapping,omitempty"`
}

// UserInfoFieldMapping names the fields of the user info. Of each list the first field that is not empty counts.
type UserInfoFieldMapping struct {
	// subjectFields identify the user; sub when empty.
	// +listType=atomic
	// +optional
	SubjectFields []string `json:"subjectFields,omitempty"`
	// nameFields are the name; name when empty.
	// +listType=atomic
	// +optional
	NameFields []string `json:"nameFields,omitempty"`
	// emailFields are the address; email when empty.
	// +listType=atomic
	// +optional
	EmailFields []string `json:"emailFields,omitempty"`
}

// TokenResponseMapping says where the fields of a token response are, as paths with dots, when they are not at the top.
type TokenResponseMapping struct {
	// accessTokenPath is where the access token is.
	// +kubebuilder:validation:MinLength=1
	// +required
	AccessTokenPath string `json:"accessTokenPath"`
	// scopePath is where the scopes are; scope when unset.
	// +optional
	ScopePath string `json:"scopePath,omitempty"`
	// refreshTokenPath is where the refresh token is; refresh_token when unset.
	// +optional
	RefreshTokenPath string `json:"refreshTokenPath,omitempty"`
	// expiresInPath is where the lifetime in seconds is; expires_in when unset.
	// +optional
	ExpiresInPath string `json:"expiresInPath,omitempty"`
}

// IdentityFromTokenConfig reads the user's identity from the token response, as paths with dots. Only TLS protects these
// values: no signature is checked.
type IdentityFromTokenConfig struct {
	// subjectPath is where the identifier of the user is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	SubjectPath string `json:"subjectPath"`
	// namePath is where the name is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	NamePath string `json:"namePath,omitempty"`
	// emailPath is where the address is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	EmailPath string `json:"emailPath,omitempty"`
}
