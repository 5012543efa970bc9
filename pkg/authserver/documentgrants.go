// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

// TrustedIssuer is an issuer whose tokens the runner accepts, with the legacy policies.
type TrustedIssuer struct {
	Name                   string     `json:"name,omitempty"`
	IssuerURL              string     `json:"issuer_url"`
	ExpectedAudience       string     `json:"expected_audience"`
	JWKSURL                string     `json:"jwks_url,omitempty"`
	InsecureAllowHTTP      bool       `json:"insecure_allow_http,omitempty"`
	AllowPrivateIPs        bool       `json:"allow_private_ips,omitempty"`
	CAFilePath             string     `json:"ca_file_path,omitempty"`
	ActorClaim             string     `json:"actor_claim,omitempty"`
	AllowedActors          []string   `json:"allowed_actors,omitempty"`
	ActorMatcher           string     `json:"actor_matcher,omitempty"`
	AllowedDelegateClients []string   `json:"allowed_delegate_clients,omitempty"`
	AllowMayAct            bool       `json:"allow_may_act,omitempty"`
	JWTBearerGrant         *JWTBearer `json:"jwt_bearer_grant,omitempty"`
}

// JWTBearer is the policy of one issuer for assertions (RFC 7523).
type JWTBearer struct {
	// MaxAssertionAge is a duration as Go writes it.
	MaxAssertionAge   string           `json:"max_assertion_age"`
	SubjectBindings   []SubjectBinding `json:"subject_bindings"`
	AcceptedAudiences []string         `json:"accepted_audiences,omitempty"`
}

// SubjectBinding names the resources for which a subject may get a token.
type SubjectBinding struct {
	Subject          string   `json:"subject"`
	AllowedResources []string `json:"allowed_resources"`
}

// DelegateClient is a client that exists from the start and exchanges tokens (RFC 8693).
type DelegateClient struct {
	ClientID           string   `json:"client_id"`
	ClientSecretEnvVar string   `json:"client_secret_env_var,omitempty"`
	Scopes             []string `json:"scopes"`
	Audiences          []string `json:"audiences"`
}

// InboundGrants names, where it is present, the only grants that the runner offers besides those of an interactive login.
type InboundGrants struct {
	TokenExchange *TokenExchangeGrant `json:"token_exchange,omitempty"`
	JWTBearer     *JWTBearerGrant     `json:"jwt_bearer,omitempty"`
}

// TokenExchangeGrant is the canonical form of what DelegateClient and TrustedIssuer say about token exchange.
type TokenExchangeGrant struct {
	DelegateClients []DelegateClient      `json:"delegate_clients,omitempty"`
	IssuerPolicies  []TokenExchangePolicy `json:"issuer_policies,omitempty"`
}

// TokenExchangePolicy is about the trusted issuer of that name.
type TokenExchangePolicy struct {
	IssuerRef              string   `json:"issuer_ref"`
	ExpectedAudience       string   `json:"expected_audience"`
	ActorClaim             string   `json:"actor_claim,omitempty"`
	AllowedActors          []string `json:"allowed_actors,omitempty"`
	ActorMatcher           string   `json:"actor_matcher,omitempty"`
	AllowedDelegateClients []string `json:"allowed_delegate_clients"`
	AllowMayAct            bool     `json:"allow_may_act,omitempty"`
}

// JWTBearerGrant is the canonical form of what TrustedIssuer says about assertions.
type JWTBearerGrant struct {
	IssuerPolicies []JWTBearerPolicy `json:"issuer_policies,omitempty"`
}

// JWTBearerPolicy is about the trusted issuer of that name.
type JWTBearerPolicy struct {
	IssuerRef string `json:"issuer_ref"`
	JWTBearer
}
