// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// EmbeddedAuthServerConfig is an OAuth authorization server inside the proxy. Users log in at an upstream identity
// provider, or clients bring tokens of issuers that it trusts.
//
// +kubebuilder:validation:XValidation:rule="(has(self.upstreamProviders) && size(self.upstreamProviders) > 0) || (has(self.delegateClients) && size(self.delegateClients) > 0) || (has(self.trustedIssuers) && self.trustedIssuers.exists(issuer, has(issuer.jwtBearerGrant))) || (has(self.inboundGrants) && (has(self.inboundGrants.tokenExchange) || has(self.inboundGrants.jwtBearer) || (has(self.inboundGrants.spiffeClientAuth) && size(self.inboundGrants.spiffeClientAuth) > 0)))",message="at least one upstream provider or inbound grant family is required"
// +kubebuilder:validation:XValidation:rule="((has(self.spiffeTrustDomains) && size(self.spiffeTrustDomains) > 0) == (has(self.inboundGrants) && has(self.inboundGrants.spiffeClientAuth) && size(self.inboundGrants.spiffeClientAuth) > 0))",message="spiffeTrustDomains and inboundGrants.spiffeClientAuth must be configured together"
// +kubebuilder:validation:XValidation:rule="!has(self.spiffeTrustDomains) || self.spiffeTrustDomains.all(domain, self.spiffeTrustDomains.filter(other, other.name == domain.name).size() == 1)",message="spiffeTrustDomains must not contain duplicate names"
// +kubebuilder:validation:XValidation:rule="!has(self.spiffeTrustDomains) || self.spiffeTrustDomains.all(domain, self.spiffeTrustDomains.filter(other, other.trustDomain == domain.trustDomain).size() == 1)",message="spiffeTrustDomains must not contain duplicate trust domains"
// +kubebuilder:validation:XValidation:rule="!has(self.spiffeTrustDomains) || self.spiffeTrustDomains.all(domain, has(self.inboundGrants) && has(self.inboundGrants.spiffeClientAuth) && self.inboundGrants.spiffeClientAuth.exists(client, client.trustDomainRef == domain.name))",message="every SPIFFE trust domain must be referenced by a SPIFFE client"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, has(self.spiffeTrustDomains) && self.spiffeTrustDomains.exists(domain, domain.name == client.trustDomainRef))",message="every SPIFFE client trustDomainRef must reference a declared trust domain"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, !has(self.spiffeTrustDomains) || !self.spiffeTrustDomains.exists(domain, domain.name == client.trustDomainRef) || self.spiffeTrustDomains.exists(domain, domain.name == client.trustDomainRef && client.methods.all(method, method in domain.methods)))",message="spiffeClientAuth methods must be enabled by the referenced trust domain"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, !has(self.spiffeTrustDomains) || !self.spiffeTrustDomains.exists(domain, domain.name == client.trustDomainRef) || self.spiffeTrustDomains.exists(domain, domain.name == client.trustDomainRef && client.principalPattern.startsWith('spiffe://' + domain.trustDomain + '/')))",message="spiffeClientAuth principalPattern trust domain must match the referenced trust domain"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, self.inboundGrants.spiffeClientAuth.filter(other, other.clientId == client.clientId).size() == 1)",message="spiffeClientAuth must not contain duplicate client IDs"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, self.inboundGrants.spiffeClientAuth.filter(other, other.principalPattern == client.principalPattern).size() == 1)",message="spiffeClientAuth must not contain duplicate principal patterns"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, !client.clientId.startsWith('synthetic:'))",message="spiffeClientAuth clientId must not use the reserved synthetic: prefix"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.spiffeClientAuth) || self.inboundGrants.spiffeClientAuth.all(client, !client.clientId.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+'))",message="spiffeClientAuth clientId must not be an absolute URL"
// +kubebuilder:validation:XValidation:rule="!(has(self.insecureAllowHTTP) && self.insecureAllowHTTP && ((has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration) || (has(self.delegateClients) && size(self.delegateClients) > 0) || (has(self.inboundGrants) && has(self.inboundGrants.tokenExchange) && has(self.inboundGrants.tokenExchange.delegateClients) && size(self.inboundGrants.tokenExchange.delegateClients) > 0)))",message="insecureAllowHTTP cannot be combined with confidential client registration or delegateClients; client secrets would be issued or used in cleartext over an unauthenticated endpoint"
// +kubebuilder:validation:XValidation:rule="(!has(self.forceConfidentialRedirectUris) || size(self.forceConfidentialRedirectUris) == 0) || (has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration)",message="forceConfidentialRedirectUris requires allowConfidentialClientRegistration to be true"
// +kubebuilder:validation:XValidation:rule="!self.issuer.startsWith('http://') || (has(self.insecureAllowConfidentialOverLoopbackHTTP) && self.insecureAllowConfidentialOverLoopbackHTTP) || ((!has(self.allowConfidentialClientRegistration) || !self.allowConfidentialClientRegistration) && (!has(self.delegateClients) || size(self.delegateClients) == 0) && (!has(self.inboundGrants) || !has(self.inboundGrants.tokenExchange) || !has(self.inboundGrants.tokenExchange.delegateClients) || size(self.inboundGrants.tokenExchange.delegateClients) == 0))",message="confidential client registration or delegateClients with an HTTP issuer require insecureAllowConfidentialOverLoopbackHTTP to be explicitly enabled; the issuer must still be loopback"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.tokenExchange) || ((!has(self.delegateClients) || size(self.delegateClients) == 0) && (!has(self.trustedIssuers) || !self.trustedIssuers.exists(issuer, has(issuer.expectedAudience) || has(issuer.actorClaim) || has(issuer.allowedActors) || has(issuer.actorMatcher) || has(issuer.allowedDelegateClients) || (has(issuer.allowMayAct) && issuer.allowMayAct))))",message="canonical tokenExchange conflicts with legacy delegateClients or RFC 8693 trusted issuer policy"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.jwtBearer) || !has(self.trustedIssuers) || !self.trustedIssuers.exists(issuer, has(issuer.jwtBearerGrant))",message="canonical jwtBearer conflicts with legacy jwtBearerGrant"
// +kubebuilder:validation:XValidation:rule="!has(self.trustedIssuers) || self.trustedIssuers.all(issuer, !has(issuer.name) || self.trustedIssuers.filter(other, has(other.name) && other.name == issuer.name).size() == 1)",message="trustedIssuers must not contain duplicate names"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.tokenExchange) || !has(self.inboundGrants.tokenExchange.issuerPolicies) || self.inboundGrants.tokenExchange.issuerPolicies.all(policy, has(self.trustedIssuers) && self.trustedIssuers.exists(issuer, has(issuer.name) && issuer.name == policy.issuerRef))",message="every tokenExchange issuerRef must reference a named trusted issuer"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.tokenExchange) || !has(self.inboundGrants.tokenExchange.issuerPolicies) || self.inboundGrants.tokenExchange.issuerPolicies.all(policy, self.inboundGrants.tokenExchange.issuerPolicies.filter(other, other.issuerRef == policy.issuerRef).size() == 1)",message="tokenExchange issuerPolicies must not contain duplicate issuerRef values"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.jwtBearer) || !has(self.inboundGrants.jwtBearer.issuerPolicies) || self.inboundGrants.jwtBearer.issuerPolicies.all(policy, has(self.trustedIssuers) && self.trustedIssuers.exists(issuer, has(issuer.name) && issuer.name == policy.issuerRef))",message="every jwtBearer issuerRef must reference a named trusted issuer"
// +kubebuilder:validation:XValidation:rule="!has(self.inboundGrants) || !has(self.inboundGrants.jwtBearer) || !has(self.inboundGrants.jwtBearer.issuerPolicies) || self.inboundGrants.jwtBearer.issuerPolicies.all(policy, self.inboundGrants.jwtBearer.issuerPolicies.filter(other, other.issuerRef == policy.issuerRef).size() == 1)",message="jwtBearer issuerPolicies must not contain duplicate issuerRef values"
type EmbeddedAuthServerConfig struct {
	// issuer is the URL of the authorization server, as tokens name it. It is https, but for loopback addresses and with
	// insecureAllowHTTP.
	// +kubebuilder:validation:Pattern=`^https?://[^\s?#]+[^/\s?#]$`
	// +required
	Issuer string `json:"issuer"`
	// authorizationEndpointBaseUrl is the URL at which browsers reach the authorization endpoint; the issuer when unset.
	// The callbacks of upstreams must have the same host.
	// +kubebuilder:validation:Pattern=`^https?://[^\s?#]+[^/\s?#]$`
	// +optional
	AuthorizationEndpointBaseURL string `json:"authorizationEndpointBaseUrl,omitempty"`
	// signingKeySecretRefs are keys of Secrets that hold private keys, in PEM. The first one signs tokens, all of them
	// verify. When empty, each pod makes a key of its own, so that tokens end with the pod.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	SigningKeySecretRefs []SecretKeyRef `json:"signingKeySecretRefs,omitempty"`
	// hmacSecretRefs are keys of Secrets that hold at least 32 bytes. The first one signs codes and refresh tokens, all
	// of them verify. When empty, each pod makes one of its own.
	// +listType=atomic
	// +optional
	HMACSecretRefs []SecretKeyRef `json:"hmacSecretRefs,omitempty"`
	// tokenLifespans is how long tokens are valid.
	// +optional
	TokenLifespans *TokenLifespanConfig `json:"tokenLifespans,omitempty"`
	// spiffeTrustDomains are SPIFFE trust domains, which the proxyrunner does not support yet.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	SPIFFETrustDomains []SPIFFETrustDomainConfig `json:"spiffeTrustDomains,omitempty"`
	// inboundGrants names the grants that are accepted beside logins.
	// +optional
	InboundGrants *InboundGrantsConfig `json:"inboundGrants,omitempty"`
	// tlsListener serves the authorization server's endpoints over TLS as well, on port 8443 of the pod. No Service has
	// that port.
	// +optional
	TLSListener *TLSListenerConfig `json:"tlsListener,omitempty"`
	// upstreamProviders are the identity providers at which users log in; at most one for an MCPServer. None makes an
	// authorization server that only answers inboundGrants.
	// +listType=map
	// +listMapKey=name
	// +optional
	UpstreamProviders []UpstreamProviderConfig `json:"upstreamProviders,omitempty"`
	// primaryUpstreamProvider has no effect on an MCPServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	PrimaryUpstreamProvider string `json:"primaryUpstreamProvider,omitempty"`
	// storage is where state is kept; in the memory of each pod when unset.
	// +optional
	Storage *AuthServerStorageConfig `json:"storage,omitempty"`
	// disableUpstreamTokenInjection sends requests without credentials to the MCP server, instead of with the upstream's
	// token.
	// +kubebuilder:default=false
	// +optional
	DisableUpstreamTokenInjection bool `json:"disableUpstreamTokenInjection,omitempty"`
	// insecureAllowHTTP accepts an issuer with http. It is for clusters whose network is trusted.
	// +kubebuilder:default=false
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHTTP,omitempty"`
	// baselineClientScopes are scopes that every client that registers itself may ask for.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:Pattern=`^[\x21\x23-\x5B\x5D-\x7E]+$`
	// +listType=atomic
	// +optional
	BaselineClientScopes []string `json:"baselineClientScopes,omitempty"`
	// allowConfidentialClientRegistration lets clients register themselves with a secret.
	// +kubebuilder:default=false
	// +optional
	AllowConfidentialClientRegistration bool `json:"allowConfidentialClientRegistration,omitempty"`
	// allowPrivateKeyJWTRegistration lets clients register themselves with a public key.
	// +kubebuilder:default=false
	// +optional
	AllowPrivateKeyJWTRegistration bool `json:"allowPrivateKeyJWTRegistration,omitempty"`
	// insecureAllowConfidentialOverLoopbackHTTP accepts clients with a secret although the issuer has http, on a loopback
	// address.
	// +kubebuilder:default=false
	// +optional
	InsecureAllowConfidentialOverLoopbackHTTP bool `json:"insecureAllowConfidentialOverLoopbackHTTP,omitempty"`
	// delegateClients are clients that may exchange tokens. Deprecated in favour of
	// inboundGrants.tokenExchange.delegateClients.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	DelegateClients []DelegateClientConfig `json:"delegateClients,omitempty"`
	// trustedIssuers are issuers whose tokens clients may exchange or present as assertions.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	TrustedIssuers []TrustedIssuerConfig `json:"trustedIssuers,omitempty"`
	// forceConfidentialRedirectUris make a client confidential that registers itself with one of them.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Pattern=`^https://[^\s?#]+$`
	// +listType=atomic
	// +optional
	ForceConfidentialRedirectURIs []string `json:"forceConfidentialRedirectUris,omitempty"`
	// cimd accepts clients whose client ID is a URL.
	// +optional
	CIMD *EmbeddedAuthServerCIMDConfig `json:"cimd,omitempty"`
	// registrationRateLimit limits how fast clients may register themselves, in each pod; 1 in a second with bursts of 5
	// when unset.
	// +kubebuilder:validation:XValidation:rule="duration(self.refillPeriod) > duration('0s')",message="registrationRateLimit.refillPeriod must be positive"
	// +optional
	RegistrationRateLimit *RateLimitBucket `json:"registrationRateLimit,omitempty"`
}

// TokenLifespanConfig is how long tokens are valid, as Go durations such as 1h30m.
type TokenLifespanConfig struct {
	// accessTokenLifespan is one hour when unset.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	AccessTokenLifespan string `json:"accessTokenLifespan,omitempty"`
	// refreshTokenLifespan is seven days when unset.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	RefreshTokenLifespan string `json:"refreshTokenLifespan,omitempty"`
	// authCodeLifespan is ten minutes when unset.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	AuthCodeLifespan string `json:"authCodeLifespan,omitempty"`
}

// EmbeddedAuthServerCIMDConfig accepts clients whose client ID is the HTTPS URL of a metadata document.
type EmbeddedAuthServerCIMDConfig struct {
	// enabled turns it on.
	// +kubebuilder:default=false
	// +required
	Enabled bool `json:"enabled"`
	// cacheMaxSize is the number of documents that are cached; 256 when unset.
	// +kubebuilder:validation:Minimum=1
	// +optional
	CacheMaxSize int `json:"cacheMaxSize,omitempty"`
	// cacheFallbackTtl is how long a document is cached, as a Go duration; 5 minutes when unset.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	CacheFallbackTTL string `json:"cacheFallbackTtl,omitempty"`
}

// TLSListenerConfig is the certificate of the TLS listener.
type TLSListenerConfig struct {
	// certificateSecretRef is the key of a Secret that holds the certificate, in PEM.
	// +required
	CertificateSecretRef SecretKeyRef `json:"certificateSecretRef"`
	// privateKeySecretRef is the key of a Secret that holds the private key, in PEM.
	// +required
	PrivateKeySecretRef SecretKeyRef `json:"privateKeySecretRef"`
}
