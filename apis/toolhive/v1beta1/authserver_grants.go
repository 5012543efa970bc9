// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// TrustedIssuerConfig is an issuer whose tokens clients may exchange or present as assertions. Its fields on delegation
// and assertions are deprecated in favour of inboundGrants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allowedDelegateClients) || !('*' in self.allowedDelegateClients) || size(self.allowedDelegateClients) == 1",message="allowedDelegateClients must not combine the wildcard \"*\" with specific client IDs"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMayAct) && self.allowMayAct && '*' in self.allowedDelegateClients)",message="allowMayAct must not be enabled when allowedDelegateClients contains the wildcard \"*\""
// +kubebuilder:validation:XValidation:rule="!has(self.actorClaim) || !(self.actorClaim in ['sub', 'iss', 'aud', 'exp', 'iat', 'nbf', 'jti', 'name', 'email', 'scope', 'scp', 'may_act'])",message="actorClaim must name a readable claim; use client_id or a non-reserved claim such as azp, appid, or cid"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowPrivateIPs) && self.allowPrivateIPs) || (has(self.jwksUrl) && self.jwksUrl != \"\")",message="allowPrivateIPs requires jwksUrl to be set explicitly"
// +kubebuilder:validation:XValidation:rule="!((has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct) || (has(self.allowedActors) && size(self.allowedActors) > 0) || (has(self.allowedDelegateClients) && size(self.allowedDelegateClients) > 0)) || (has(self.expectedAudience) && size(self.expectedAudience) > 0)",message="expectedAudience is required when legacy RFC 8693 policy is configured"
// +kubebuilder:validation:XValidation:rule="!((has(self.expectedAudience) && size(self.expectedAudience) > 0) || (has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct) || (has(self.allowedActors) && size(self.allowedActors) > 0)) || (has(self.allowedDelegateClients) && size(self.allowedDelegateClients) > 0)",message="allowedDelegateClients is required when legacy RFC 8693 policy is configured"
type TrustedIssuerConfig struct {
	// name by which inboundGrants refers to the issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// issuerUrl is the claim iss of its tokens.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	IssuerURL string `json:"issuerUrl"`
	// expectedAudience that a token must carry. Deprecated in favour of inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ExpectedAudience string `json:"expectedAudience,omitempty"`
	// jwksUrl is where the issuer's keys are; OIDC discovery finds it when unset.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	JWKSURL string `json:"jwksUrl,omitempty"`
	// insecureAllowHTTP accepts endpoints with http. It is for tests.
	// +optional
	InsecureAllowHTTP bool `json:"insecureAllowHTTP,omitempty"`
	// allowPrivateIPs lets the proxy fetch keys from private addresses. It needs jwksUrl.
	// +optional
	AllowPrivateIPs bool `json:"allowPrivateIPs,omitempty"`
	// caBundleRef names certificate authorities to trust besides those of the system.
	// +optional
	CABundleRef *CABundleSource `json:"caBundleRef,omitempty"`
	// actorClaim is the claim that names the client that the token was issued to; azp when unset. Deprecated in favour of
	// inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ActorClaim string `json:"actorClaim,omitempty"`
	// allowedActors are the values of actorClaim that may be exchanged. Deprecated in favour of
	// inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	AllowedActors []string `json:"allowedActors,omitempty"`
	// actorMatcher is a CEL expression over claims; a token for which it is true may be exchanged as well. Deprecated in
	// favour of inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ActorMatcher string `json:"actorMatcher,omitempty"`
	// allowedDelegateClients are the clients that may exchange a token; * is any confidential client. Deprecated in
	// favour of inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	AllowedDelegateClients []string `json:"allowedDelegateClients,omitempty"`
	// allowMayAct lets the token's claim may_act decide who may exchange it. Deprecated in favour of
	// inboundGrants.tokenExchange.issuerPolicies.
	// +kubebuilder:default=false
	// +optional
	AllowMayAct bool `json:"allowMayAct,omitempty"`
	// jwtBearerGrant accepts assertions. Deprecated in favour of inboundGrants.jwtBearer.issuerPolicies.
	// +optional
	JWTBearerGrant *JWTBearerGrantConfig `json:"jwtBearerGrant,omitempty"`
}

// JWTBearerGrantConfig limits the assertions (RFC 7523) of one issuer.
//
// +kubebuilder:validation:XValidation:rule="duration(self.maxAssertionAge) > duration('0s')",message="maxAssertionAge must be greater than zero"
// +kubebuilder:validation:XValidation:rule="self.subjectBindings.all(binding, self.subjectBindings.filter(other, other.subject == binding.subject).size() == 1)",message="subjectBindings must not contain duplicate subjects"
type JWTBearerGrantConfig struct {
	// maxAssertionAge is the longest time between iat and exp, as a Go duration.
	// +required
	MaxAssertionAge string `json:"maxAssertionAge"`
	// subjectBindings say what each subject may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +required
	SubjectBindings []JWTBearerSubjectBinding `json:"subjectBindings"`
	// acceptedAudiences of an assertion; the token endpoint when empty.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^https?://[^[:space:]]+$`
	// +listType=atomic
	// +optional
	AcceptedAudiences []string `json:"acceptedAudiences,omitempty"`
}

// JWTBearerSubjectBinding says what one subject may ask for.
type JWTBearerSubjectBinding struct {
	// subject is the claim sub of the assertion.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^*]+$`
	// +required
	Subject string `json:"subject"`
	// allowedResources are the resources (RFC 8707) that the subject may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^https?://[^[:space:]]+$`
	// +listType=atomic
	// +required
	AllowedResources []string `json:"allowedResources"`
}

// DelegateClientConfig is a confidential client that may exchange tokens (RFC 8693).
//
// +kubebuilder:validation:XValidation:rule="has(self.clientSecretRef) && size(self.clientSecretRef.name) > 0 && size(self.clientSecretRef.key) > 0",message="clientSecretRef.name and clientSecretRef.key are required and must be non-empty"
type DelegateClientConfig struct {
	// clientId of the client.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	ClientID string `json:"clientId"`
	// clientSecretRef is the key of a Secret that holds the client secret, of at least 32 characters.
	// +required
	ClientSecretRef SecretKeyRef `json:"clientSecretRef"`
	// scopes that the client may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +required
	Scopes []string `json:"scopes"`
	// audiences that the client may ask for.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	// +required
	Audiences []string `json:"audiences"`
}

// InboundGrantsConfig names the grants that the authorization server accepts beside logins. When it is set, only those
// named in it are accepted.
type InboundGrantsConfig struct {
	// spiffeClientAuth are SPIFFE workloads that are clients, which the proxyrunner does not support yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	SPIFFEClientAuth []SPIFFEClientConfig `json:"spiffeClientAuth,omitempty"`
	// tokenExchange accepts tokens for exchange.
	// +optional
	TokenExchange *TokenExchangeInboundGrantConfig `json:"tokenExchange,omitempty"`
	// jwtBearer accepts assertions.
	// +optional
	JWTBearer *JWTBearerInboundGrantConfig `json:"jwtBearer,omitempty"`
}

// TokenExchangeInboundGrantConfig is who may exchange tokens (RFC 8693).
type TokenExchangeInboundGrantConfig struct {
	// delegateClients are clients that may exchange tokens.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	DelegateClients []DelegateClientConfig `json:"delegateClients,omitempty"`
	// issuerPolicies are about tokens of other issuers.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	IssuerPolicies []TokenExchangeIssuerPolicyConfig `json:"issuerPolicies,omitempty"`
}

// TokenExchangeIssuerPolicyConfig is which tokens of one issuer may be exchanged, and by which clients.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.allowedDelegateClients) || size(self.allowedDelegateClients) == 1",message="allowedDelegateClients must not combine the wildcard \"*\" with specific client IDs"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMayAct) && self.allowMayAct && '*' in self.allowedDelegateClients)",message="allowMayAct must not be enabled when allowedDelegateClients contains the wildcard \"*\""
// +kubebuilder:validation:XValidation:rule="!has(self.actorClaim) || !(self.actorClaim in ['sub', 'iss', 'aud', 'exp', 'iat', 'nbf', 'jti', 'name', 'email', 'scope', 'scp', 'may_act'])",message="actorClaim must name a readable claim; use client_id or a non-reserved claim such as azp, appid, or cid"
type TokenExchangeIssuerPolicyConfig struct {
	// issuerRef is the name of a trusted issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	IssuerRef string `json:"issuerRef"`
	// expectedAudience that a token must carry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	ExpectedAudience string `json:"expectedAudience"`
	// actorClaim is the claim that names the client that the token was issued to; azp when unset.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ActorClaim string `json:"actorClaim,omitempty"`
	// allowedActors are the values of actorClaim that may be exchanged.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	AllowedActors []string `json:"allowedActors,omitempty"`
	// actorMatcher is a CEL expression over claims; a token for which it is true may be exchanged as well.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ActorMatcher string `json:"actorMatcher,omitempty"`
	// allowedDelegateClients are the clients that may exchange a token; * is any confidential client.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +required
	AllowedDelegateClients []string `json:"allowedDelegateClients"`
	// allowMayAct lets the token's claim may_act decide who may exchange it.
	// +optional
	AllowMayAct bool `json:"allowMayAct,omitempty"`
}

// JWTBearerInboundGrantConfig is who may present assertions (RFC 7523).
type JWTBearerInboundGrantConfig struct {
	// issuerPolicies are about assertions of other issuers.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	IssuerPolicies []JWTBearerIssuerPolicyConfig `json:"issuerPolicies,omitempty"`
}

// JWTBearerIssuerPolicyConfig limits the assertions of one issuer.
type JWTBearerIssuerPolicyConfig struct {
	// issuerRef is the name of a trusted issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	IssuerRef            string `json:"issuerRef"`
	JWTBearerGrantConfig `json:",inline"`
}
