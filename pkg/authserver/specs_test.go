// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// goodSpec is a configuration of one upstream of type oidc that works.
func goodSpec() *v1beta1.EmbeddedAuthServerConfig {
	return &v1beta1.EmbeddedAuthServerConfig{
		Issuer: "https://mcp.example.com",
		UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
			Name: "okta", Type: v1beta1.UpstreamProviderTypeOIDC,
			OIDCConfig: &v1beta1.OIDCUpstreamConfig{IssuerURL: "https://okta.example.com", ClientID: "cid"},
		}},
	}
}

// goodInput is an MCPServer with goodSpec.
func goodInput() Input {
	return Input{
		Spec: goodSpec(), Namespace: "ns", Name: "srv", OIDC: true, Audience: resourceURL, ResourceURL: resourceURL, ProxyPort: 8080,
		Bundles: bundleMaps(), Runner: runner062,
	}
}

func oauth2Spec(change func(*v1beta1.OAuth2UpstreamConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) {
		o := &v1beta1.OAuth2UpstreamConfig{
			AuthorizationEndpoint: "https://git.example.com/authorize", TokenEndpoint: "https://git.example.com/token", ClientID: "cid",
		}
		change(o)
		s.UpstreamProviders[0] = v1beta1.UpstreamProviderConfig{Name: "git", Type: v1beta1.UpstreamProviderTypeOAuth2, OAuth2Config: o}
	}
}

func oidcSpec(change func(*v1beta1.OIDCUpstreamConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) { change(s.UpstreamProviders[0].OIDCConfig) }
}

func dcrSpec(d v1beta1.DCRUpstreamConfig) func(*v1beta1.EmbeddedAuthServerConfig) {
	return oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) { o.ClientID, o.DCRConfig = "", &d })
}

func redisSpec(change func(*v1beta1.RedisStorageConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) {
		r := &v1beta1.RedisStorageConfig{
			Addr: "redis:6379", ACLUserConfig: v1beta1.RedisACLUserConfig{PasswordSecretRef: v1beta1.SecretKeyRef{Name: "as", Key: "p"}},
		}
		change(r)
		s.Storage = &v1beta1.AuthServerStorageConfig{Type: v1beta1.AuthServerStorageTypeRedis, Redis: r}
	}
}

func goodDelegate() v1beta1.DelegateClientConfig {
	return v1beta1.DelegateClientConfig{
		ClientID: "agent", ClientSecretRef: v1beta1.SecretKeyRef{Name: "as", Key: "d"}, Scopes: []string{"openid"}, Audiences: []string{resourceURL},
	}
}

func delegateSpec(change func(*v1beta1.DelegateClientConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) {
		d := goodDelegate()
		change(&d)
		s.DelegateClients = []v1beta1.DelegateClientConfig{d}
	}
}

// trustedSpec has an issuer with a legacy policy for token exchange.
func trustedSpec(change func(*v1beta1.TrustedIssuerConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) {
		t := v1beta1.TrustedIssuerConfig{
			Name: "partner", IssuerURL: "https://partner.example.com", ExpectedAudience: "aud", AllowedDelegateClients: []string{"agent"},
		}
		change(&t)
		s.TrustedIssuers = []v1beta1.TrustedIssuerConfig{t}
	}
}

func goodAssertions() *v1beta1.JWTBearerGrantConfig {
	return &v1beta1.JWTBearerGrantConfig{
		MaxAssertionAge: "5m", SubjectBindings: []v1beta1.JWTBearerSubjectBinding{{Subject: "job", AllowedResources: []string{resourceURL}}},
	}
}

// assertionSpec has an issuer with a legacy policy for assertions.
func assertionSpec(change func(*v1beta1.JWTBearerGrantConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return trustedSpec(func(t *v1beta1.TrustedIssuerConfig) {
		t.ExpectedAudience, t.AllowedDelegateClients, t.JWTBearerGrant = "", nil, goodAssertions()
		change(t.JWTBearerGrant)
	})
}

// canonicalSpec has an issuer without a policy of its own, and canonical ones for it.
func canonicalSpec(change func(*v1beta1.EmbeddedAuthServerConfig)) func(*v1beta1.EmbeddedAuthServerConfig) {
	return func(s *v1beta1.EmbeddedAuthServerConfig) {
		s.TrustedIssuers = []v1beta1.TrustedIssuerConfig{{Name: "partner", IssuerURL: "https://partner.example.com"}}
		s.InboundGrants = &v1beta1.InboundGrantsConfig{
			TokenExchange: &v1beta1.TokenExchangeInboundGrantConfig{
				DelegateClients: []v1beta1.DelegateClientConfig{goodDelegate()},
				IssuerPolicies: []v1beta1.TokenExchangeIssuerPolicyConfig{
					{IssuerRef: "partner", ExpectedAudience: "aud", AllowedDelegateClients: []string{"agent"}},
				},
			},
			JWTBearer: &v1beta1.JWTBearerInboundGrantConfig{
				IssuerPolicies: []v1beta1.JWTBearerIssuerPolicyConfig{{IssuerRef: "partner", JWTBearerGrantConfig: *goodAssertions()}},
			},
		}
		change(s)
	}
}

func slicesRepeat[V any](value V, n int) []V {
	var list []V
	for range n {
		list = append(list, value)
	}
	return list
}
