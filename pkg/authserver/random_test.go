// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

const resourceURL = "https://mcp.example.com/srv"

// generator draws configurations of every field, most of which work.
type generator struct {
	*rapid.T
}

// one draws a value; of the bad ones seldom.
func one[V any](g generator, good []V, bad ...V) V {
	if len(bad) > 0 && rapid.IntRange(0, 99).Draw(g.T, "bad") == 50 { // the ends of a range are drawn more often
		return rapid.SampledFrom(bad).Draw(g.T, "value")
	}
	return rapid.SampledFrom(good).Draw(g.T, "value")
}

// maybe is true once in n times.
func (g generator) maybe(n int) bool { return rapid.IntRange(1, n).Draw(g.T, "maybe") == 1 }

// some draws up to n entries.
func some[V any](g generator, n int, draw func(i int) V) []V {
	var list []V
	for i := range rapid.IntRange(0, n).Draw(g.T, "n") {
		list = append(list, draw(i))
	}
	return list
}

// orNil draws a value once in n times.
func orNil[V any](g generator, n int, draw func() V) *V {
	if !g.maybe(n) {
		return nil
	}
	return new(draw())
}

func (g generator) secret() v1beta1.SecretKeyRef {
	return v1beta1.SecretKeyRef{Name: one(g, []string{"as", "other"}), Key: one(g, []string{"k", "key.pem"})}
}

func (g generator) bundle() v1beta1.CABundleSource {
	return v1beta1.CABundleSource{ConfigMapRef: one(g,
		[]*v1beta1.ConfigMapKeySelector{{Name: "ca", Key: "ca.crt"}, {Name: "ca"}, {Name: "ca", Key: "two"}, {Name: "binary", Key: "ca.crt"}},
		&v1beta1.ConfigMapKeySelector{Name: "gone", Key: "ca.crt"}, &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "gone"},
		&v1beta1.ConfigMapKeySelector{Name: "ca", Key: "ca.crt", Optional: new(true)}, &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "key"},
		&v1beta1.ConfigMapKeySelector{Name: "ca", Key: "text"}, &v1beta1.ConfigMapKeySelector{Key: "ca.crt"}, nil)}
}

func (g generator) scopes() []string {
	return one(g, [][]string{nil, {"openid"}, {"openid", "email"}}, []string{"email"}, []string{"nowhere"})
}

func (g generator) params() (authorization, token map[string]string) {
	authorization = one(g, []map[string]string{nil, {"prompt": "consent", "access_type": "offline"}}, map[string]string{"nonce": "n", "state": "s"})
	token = one(g, []map[string]string{nil, nil, {"resource": "https://r.example.com"}},
		map[string]string{"resource": "r"}, map[string]string{"resource": ""}, map[string]string{"grant_type": "g", "client_assertion": "c"})
	return authorization, token
}

func (g generator) url() string {
	return one(g, []string{"https://idp.example.com", "https://idp.example.com/a"}, "http://localhost:8080", "http://127.0.0.1/x",
		"http://idp.example.com", "https://u:p@idp.example.com", "https://idp.example.com/?q=1", "https://idp.example.com/#f", "https://idp.example.com/", "http://[::1]/x")
}

func (g generator) redirect() string {
	return one(g, []string{"", "", resourceURL + "/cb", "https://auth.example.com/cb"}, "http://localhost/cb", "http://a.localhost/cb", "http://127.0.0.2/cb",
		"http://x.example.com/cb", "https://x.example.com/cb#f", "ftp://x.example.com/cb")
}

func (g generator) duration() string {
	return one(g, []string{"5m", "1h30m", "90s"}, "", "0s", "-5m", "5x", "10s")
}

func (g generator) dcr() v1beta1.DCRUpstreamConfig {
	d := v1beta1.DCRUpstreamConfig{
		RotationKey: one(g, []string{"", "r.1"}, "a b"), RegistrationProbe: one(g, []string{"", "none", "tokenEndpoint"}, "other"),
		RegistrationProbeInterval: one(g, []string{"", "5m"}, "30s", "x"), InitialAccessTokenRef: orNil(g, 3, g.secret),
		SoftwareID: one(g, []string{"", "sid"}), SoftwareStatement: one(g, []string{"", "eyJ"}),
	}
	if g.maybe(2) {
		d.DiscoveryURL = g.url()
	} else if g.maybe(2) {
		d.RegistrationEndpoint = g.url()
	}
	return d
}

func (g generator) userInfo() v1beta1.UserInfoConfig {
	return v1beta1.UserInfoConfig{
		EndpointURL: g.url(), HTTPMethod: one(g, []string{"", "GET", "POST"}, "PUT"),
		AdditionalHeaders: one(g, []map[string]string{nil, {"Accept": "application/json", "B": "b"}}),
		FieldMapping: orNil(g, 2, func() v1beta1.UserInfoFieldMapping {
			return v1beta1.UserInfoFieldMapping{SubjectFields: one(g, [][]string{nil, {"id", "login"}}), EmailFields: one(g, [][]string{nil, {"mail"}})}
		}),
	}
}

func (g generator) upstream(i int) v1beta1.UpstreamProviderConfig {
	u := v1beta1.UpstreamProviderConfig{Name: one(g, []string{"okta", "git-hub", fmt.Sprint("u-", i)}, "Bad_Name", "")}
	if g.maybe(3) {
		u.Type = v1beta1.UpstreamProviderTypeOIDC
		o := &v1beta1.OIDCUpstreamConfig{
			IssuerURL: g.url(), ClientID: one(g, []string{"cid"}, ""), DCRConfig: orNil(g, 30, g.dcr), ClientSecretRef: orNil(g, 2, g.secret),
			RedirectURI: g.redirect(), Scopes: g.scopes(), UserInfoOverride: orNil(g, 5, g.userInfo), OmitScopeOnRefresh: g.maybe(4),
			SubjectClaim: one(g, []string{"", "oid"}, "a.b"), CABundleRef: orNil(g, 3, g.bundle), AllowPrivateIPs: g.maybe(4),
		}
		o.AdditionalAuthorizationParams, o.AdditionalTokenParams = g.params()
		u.OIDCConfig = o
	} else {
		u.Type = v1beta1.UpstreamProviderTypeOAuth2
		o := &v1beta1.OAuth2UpstreamConfig{
			AuthorizationEndpoint: g.url(), TokenEndpoint: g.url(), ClientID: one(g, []string{"cid"}, ""), ClientSecretRef: orNil(g, 2, g.secret),
			RedirectURI: g.redirect(), Scopes: g.scopes(), UserInfo: orNil(g, 2, g.userInfo), OmitScopeOnRefresh: g.maybe(4),
			TokenResponseMapping: orNil(g, 4, func() v1beta1.TokenResponseMapping {
				return v1beta1.TokenResponseMapping{AccessTokenPath: one(g, []string{"a.b"}, ""), ScopePath: "s"}
			}),
			IdentityFromToken: orNil(g, 4, func() v1beta1.IdentityFromTokenConfig {
				return v1beta1.IdentityFromTokenConfig{SubjectPath: one(g, []string{"a.b"}, ""), NamePath: "n"}
			}),
			CABundleRef: orNil(g, 3, g.bundle), InsecureAllowHTTP: g.maybe(8), AllowPrivateIPs: g.maybe(4),
		}
		if o.ClientSecretRef != nil {
			o.TokenEndpointAuthMethod = one(g, []string{"", "client_secret_basic", "client_secret_post"}, "none", "private_key_jwt")
		} else {
			o.TokenEndpointAuthMethod = one(g, []string{"", "none"}, "client_secret_post")
		}
		if g.maybe(30) {
			o.DCRConfig = new(g.dcr())
		}
		o.AdditionalAuthorizationParams, o.AdditionalTokenParams = g.params()
		u.OAuth2Config = o
	}
	if g.maybe(60) {
		u.Type = one(g, []v1beta1.UpstreamProviderType{"oidc", "oauth2", "other"})
	}
	return u
}

func (g generator) delegate(i int) v1beta1.DelegateClientConfig {
	return v1beta1.DelegateClientConfig{
		ClientID: one(g, []string{fmt.Sprint("d", i)}, "d0", "", "https://c.example.com", "http://localhost/c", "http://c.example.com"), ClientSecretRef: g.secret(),
		Scopes: one(g, [][]string{{"openid"}}, nil, []string{"nowhere"}), Audiences: one(g, [][]string{{resourceURL}}, nil, []string{"https://elsewhere.example.com"}),
	}
}

func (g generator) exchange(ref string) v1beta1.TokenExchangeIssuerPolicyConfig {
	return v1beta1.TokenExchangeIssuerPolicyConfig{
		IssuerRef: ref, ExpectedAudience: one(g, []string{"aud"}, ""), ActorClaim: one(g, []string{"", "azp"}, "sub"),
		AllowedActors: one(g, [][]string{nil, {"a"}}), ActorMatcher: one(g, []string{"", `claims.sub == "x"`}),
		AllowedDelegateClients: one(g, [][]string{{"d0"}, {"*"}}, nil, []string{""}, []string{"*", "d0"}), AllowMayAct: g.maybe(15),
	}
}

func (g generator) assertions() v1beta1.JWTBearerGrantConfig {
	return v1beta1.JWTBearerGrantConfig{
		MaxAssertionAge: g.duration(),
		SubjectBindings: one(g, [][]v1beta1.JWTBearerSubjectBinding{
			{{Subject: "s", AllowedResources: []string{resourceURL}}},
			{{Subject: "s", AllowedResources: []string{resourceURL}}, {Subject: "t", AllowedResources: []string{resourceURL}}},
		}, nil, []v1beta1.JWTBearerSubjectBinding{{Subject: "*", AllowedResources: []string{resourceURL}}},
			[]v1beta1.JWTBearerSubjectBinding{{Subject: "s", AllowedResources: []string{"https://elsewhere.example.com"}}},
			[]v1beta1.JWTBearerSubjectBinding{{Subject: "s", AllowedResources: []string{"nowhere"}}}, []v1beta1.JWTBearerSubjectBinding{{Subject: "s"}}),
		AcceptedAudiences: one(g, [][]string{nil, {"https://auth.example.com/oauth/token"}}, []string{resourceURL}, []string{"x"}, []string{""}),
	}
}

func (g generator) trusted(i int, legacy bool) v1beta1.TrustedIssuerConfig {
	t := v1beta1.TrustedIssuerConfig{
		Name: one(g, []string{fmt.Sprint("t", i)}, "t0", ""), IssuerURL: one(g, []string{fmt.Sprintf("https://t%d.example.com", i), fmt.Sprintf("https://t%d.example.com/", i)},
			"https://auth.example.com", "http://t.example.com", "https://t0.example.com", "https://u:p@t.example.com", "https://t.example.com/?q"),
		JWKSURL: one(g, []string{"", "https://t.example.com/jwks", "https://8.8.8.8/jwks"}, "http://t.example.com/jwks", "https://10.0.0.1/jwks", "https://u:p@t.example.com/jwks",
			"https://[::1]/jwks", "https://[64:ff9b::a00:1]/jwks", "https://[2002:a00:1::]/jwks", "https://t.example.com/jwks#f", "https://[::ffff:10.0.0.1]/jwks"),
		InsecureAllowHTTP: g.maybe(10), AllowPrivateIPs: g.maybe(20), CABundleRef: orNil(g, 3, g.bundle),
	}
	if legacy && g.maybe(2) {
		p := g.exchange("")
		t.ExpectedAudience, t.ActorClaim, t.AllowedActors, t.ActorMatcher = p.ExpectedAudience, p.ActorClaim, p.AllowedActors, p.ActorMatcher
		t.AllowedDelegateClients, t.AllowMayAct = p.AllowedDelegateClients, p.AllowMayAct
	} else if legacy {
		t.JWTBearerGrant = new(g.assertions())
	}
	return t
}

func (g generator) storage() v1beta1.AuthServerStorageConfig {
	s := v1beta1.AuthServerStorageConfig{
		Type:          one(g, []v1beta1.AuthServerStorageType{"memory", "redis"}, "other"),
		MaxDCRClients: one(g, []*int32{nil, new(int32(0)), new(int32(25))}, new(int32(-1))),
	}
	tls := func() v1beta1.RedisTLSConfig {
		return v1beta1.RedisTLSConfig{InsecureSkipVerify: g.maybe(3), CACertSecretRef: orNil(g, 2, g.secret)}
	}
	if g.maybe(2) || s.Type == "redis" && !g.maybe(20) {
		s.Redis = &v1beta1.RedisStorageConfig{
			ACLUserConfig: v1beta1.RedisACLUserConfig{UsernameSecretRef: orNil(g, 2, g.secret), PasswordSecretRef: g.secret()},
			DialTimeout:   one(g, []string{"", "5s"}), ReadTimeout: "3s", TLS: orNil(g, 2, tls), SentinelTLS: orNil(g, 2, tls),
		}
		if g.maybe(2) {
			s.Redis.Addr, s.Redis.ClusterMode = "redis:6379", g.maybe(2)
		}
		if s.Redis.Addr == "" && !g.maybe(20) || g.maybe(20) {
			s.Redis.SentinelConfig = &v1beta1.RedisSentinelConfig{
				MasterName: "m", DB: int32(rapid.IntRange(0, 3).Draw(g.T, "db")),
				SentinelAddrs: one(g, [][]string{nil, {"a:1", "b:2"}}),
			}
			if len(s.Redis.SentinelConfig.SentinelAddrs) == 0 {
				s.Redis.SentinelConfig.SentinelService = one(g, []*v1beta1.SentinelServiceRef{{Name: "s"}, {Name: "s", Namespace: "n", Port: 1}}, nil)
			}
		}
	}
	return s
}

func (g generator) spec() *v1beta1.EmbeddedAuthServerConfig {
	s := &v1beta1.EmbeddedAuthServerConfig{
		Issuer: one(g, []string{"https://auth.example.com", "https://auth.example.com", "https://auth.example.com/a"}, "http://auth.example.com", "http://localhost:8080",
			"http://127.0.0.1", "https://auth.example.com/", "https://auth.example.com?q=1", "auth", "https://u:p@auth.example.com", "http://[::1]:80"),
		AuthorizationEndpointBaseURL: one(g, []string{"", "https://login.example.com"}, "http://login.example.com", "https://login.example.com/"),
		SigningKeySecretRefs:         some(g, 3, func(int) v1beta1.SecretKeyRef { return g.secret() }),
		HMACSecretRefs:               some(g, 3, func(int) v1beta1.SecretKeyRef { return g.secret() }),
		TokenLifespans: orNil(g, 3, func() v1beta1.TokenLifespanConfig {
			return v1beta1.TokenLifespanConfig{
				AccessTokenLifespan:  one(g, []string{"", "1h"}, "10s", "48h", "0s"),
				RefreshTokenLifespan: one(g, []string{"", "168h"}, "1m", "1000h"), AuthCodeLifespan: one(g, []string{"", "5m"}, "1s", "1h"),
			}
		}),
		TLSListener: orNil(g, 4, func() v1beta1.TLSListenerConfig {
			return v1beta1.TLSListenerConfig{CertificateSecretRef: g.secret(), PrivateKeySecretRef: g.secret()}
		}),
		Storage: orNil(g, 2, g.storage), DisableUpstreamTokenInjection: g.maybe(5), InsecureAllowHTTP: g.maybe(12),
		BaselineClientScopes:                one(g, [][]string{nil, {"openid"}}, []string{"nowhere"}),
		AllowConfidentialClientRegistration: g.maybe(4), AllowPrivateKeyJWTRegistration: g.maybe(6),
		InsecureAllowConfidentialOverLoopbackHTTP: g.maybe(8),
		CIMD: orNil(g, 4, func() v1beta1.EmbeddedAuthServerCIMDConfig {
			return v1beta1.EmbeddedAuthServerCIMDConfig{Enabled: g.maybe(2), CacheMaxSize: one(g, []int{0, 5}, -1), CacheFallbackTTL: g.duration()}
		}),
		RegistrationRateLimit: orNil(g, 3, func() v1beta1.RateLimitBucket {
			return v1beta1.RateLimitBucket{MaxTokens: one(g, []int32{3, 10}, 0), RefillPeriod: one(g, []string{"18s", "1m"}, "0s")}
		}),
	}
	if s.AllowConfidentialClientRegistration || g.maybe(40) {
		s.ForceConfidentialRedirectURIs = one(g, [][]string{nil, {"https://app.example.com/cb"}}, []string{"http://localhost/cb"}, []string{"https://localhost/cb"}, []string{"cb"},
			[]string{"http://app.example.com"})
	}
	s.UpstreamProviders = some(g, 1, g.upstream)
	if g.maybe(30) {
		s.UpstreamProviders = some(g, 3, g.upstream)
	}
	canonical := g.maybe(2)
	s.TrustedIssuers = some(g, 3, func(i int) v1beta1.TrustedIssuerConfig { return g.trusted(i, !canonical || g.maybe(60)) })
	if !canonical || g.maybe(60) {
		s.DelegateClients = some(g, 2, g.delegate)
	}
	if canonical {
		s.InboundGrants = &v1beta1.InboundGrantsConfig{
			TokenExchange: orNil(g, 2, func() v1beta1.TokenExchangeInboundGrantConfig {
				return v1beta1.TokenExchangeInboundGrantConfig{
					DelegateClients: some(g, 2, g.delegate),
					IssuerPolicies: some(g, len(s.TrustedIssuers), func(i int) v1beta1.TokenExchangeIssuerPolicyConfig {
						return g.exchange(one(g, []string{fmt.Sprint("t", i)}, "t0", "t9", ""))
					}),
				}
			}),
			JWTBearer: orNil(g, 2, func() v1beta1.JWTBearerInboundGrantConfig {
				return v1beta1.JWTBearerInboundGrantConfig{IssuerPolicies: some(g, len(s.TrustedIssuers), func(i int) v1beta1.JWTBearerIssuerPolicyConfig {
					return v1beta1.JWTBearerIssuerPolicyConfig{IssuerRef: one(g, []string{fmt.Sprint("t", i)}, "t0", "t9", ""), JWTBearerGrantConfig: g.assertions()}
				})}
			}),
		}
	}
	return s
}

// input draws an input, whose MCPServer suits the configuration most of the time.
func (g generator) input() Input {
	in := Input{
		Spec: g.spec(), Namespace: "ns", Name: "srv", OIDC: true, Audience: resourceURL, ResourceURL: one(g, []string{resourceURL}, "http://srv.ns.svc:8080", "nowhere", ""),
		Scopes: one(g, [][]string{nil, {"openid", "email"}}), ProxyPort: one(g, []int32{8080}, TLSListenerPort), TokenExchange: g.maybe(5),
		Replicas: one(g, []*int32{nil, new(int32(1)), new(int32(3))}), Bundles: bundleMaps(),
	}
	in.Audience = one(g, []string{in.ResourceURL}, "other")
	return in
}

// bundleMaps are ConfigMaps with bundles, good ones and others.
func bundleMaps() map[string]*corev1.ConfigMap {
	return map[string]*corev1.ConfigMap{
		"ca": {Data: map[string]string{
			"ca.crt": certificateA, "two": "Two of them.\n" + certificateA + "\n" + certificateB, "key": certificateA + privateKey, "text": certificateA + "more",
			"empty": " \n", "broken": brokenCertificate, "headers": headedCertificate, "request": certificateRequest,
		}},
		"binary": {BinaryData: map[string][]byte{"ca.crt": []byte(certificateB)}},
	}
}
