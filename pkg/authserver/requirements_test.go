// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Every reason for which a configuration that is valid cannot work with an MCPServer.
func TestMCPServersForWhichAConfigurationCannotWorkAreRefused(t *testing.T) {
	const inCluster = "http://srv.ns.svc.cluster.local:8080"
	at := func(url string, change func(*Input)) func(*Input) {
		return func(in *Input) {
			in.Audience, in.ResourceURL = url, url
			change(in)
		}
	}
	for _, c := range []struct {
		// want is how the message begins, reason its reason.
		want, reason string
		change       func(*Input)
	}{
		{"spec.oidcConfigRef is missing", v1beta1.ReasonInvalidConfig, func(in *Input) { in.OIDC, in.Audience, in.ResourceURL = false, "", "" }},
		{"spec.oidcConfigRef.resourceUrl is missing", v1beta1.ReasonInvalidConfig, func(in *Input) { in.ResourceURL = "" }},
		{"spec.oidcConfigRef.audience must be the same", v1beta1.ReasonInvalidConfig, func(in *Input) { in.Audience = "other" }},
		{"spec.oidcConfigRef.audience must be the same", v1beta1.ReasonInvalidConfig, func(in *Input) { in.Audience = "" }},
		{"spec.oidcConfigRef.resourceUrl must be an http or https URL", v1beta1.ReasonInvalidConfig, at("srv", func(in *Input) {
			oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.RedirectURI = "https://mcp.example.com/cb" })(in.Spec)
		})},
		{"spec.oidcConfigRef.resourceUrl has a fragment", v1beta1.ReasonInvalidConfig, at(resourceURL+"#a", func(in *Input) {
			oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.RedirectURI = "https://mcp.example.com/cb" })(in.Spec)
		})},
		{"spec.externalAuthConfigRef is of type tokenExchange", v1beta1.ReasonInvalidConfig, func(in *Input) {
			in.TokenExchange, in.Spec.DisableUpstreamTokenInjection = true, true
		}},
		{"spec.externalAuthConfigRef is of type tokenExchange", v1beta1.ReasonInvalidConfig, func(in *Input) {
			canonicalSpec(func(s *v1beta1.EmbeddedAuthServerConfig) { s.UpstreamProviders = nil })(in.Spec)
			in.TokenExchange = true
		}},
		{"spec.proxyPort is 8443", v1beta1.ReasonInvalidConfig, func(in *Input) {
			ref := v1beta1.SecretKeyRef{Name: "as", Key: "k"}
			in.ProxyPort, in.Spec.TLSListener = TLSListenerPort, &v1beta1.TLSListenerConfig{CertificateSecretRef: ref, PrivateKeySecretRef: ref}
		}},
		{root + ".upstreamProviders[0].oidcConfig.redirectUri is missing, and its default", v1beta1.ReasonInvalidConfig, at(inCluster, func(*Input) {})},
		{root + ".upstreamProviders[0].oauth2Config.redirectUri is missing, and its default", v1beta1.ReasonInvalidConfig, at(inCluster, func(in *Input) {
			oauth2Spec(func(*v1beta1.OAuth2UpstreamConfig) {})(in.Spec)
		})},
		{root + ".baselineClientScopes names \"mcp:read\", a scope", v1beta1.ReasonInvalidConfig, func(in *Input) { in.Spec.BaselineClientScopes = []string{"openid", "mcp:read"} }},
		{root + ".baselineClientScopes names \"profile\", a scope", v1beta1.ReasonInvalidConfig, func(in *Input) {
			in.Spec.BaselineClientScopes, in.Scopes = []string{"profile"}, []string{"openid"}
		}},
		{root + ".delegateClients[0].scopes names \"mcp:read\", a scope", v1beta1.ReasonInvalidConfig, func(in *Input) {
			delegateSpec(func(d *v1beta1.DelegateClientConfig) { d.Scopes = []string{"mcp:read"} })(in.Spec)
		}},
		{root + ".inboundGrants.tokenExchange.delegateClients[0].audiences names \"https://elsewhere.example.com\", which", v1beta1.ReasonInvalidConfig, func(in *Input) {
			canonicalSpec(func(s *v1beta1.EmbeddedAuthServerConfig) {
				s.InboundGrants.TokenExchange.DelegateClients[0].Audiences = []string{"https://elsewhere.example.com"}
			})(in.Spec)
		}},
		{root + ".delegateClients[0].audiences names \"https://elsewhere.example.com\", which", v1beta1.ReasonInvalidConfig, func(in *Input) {
			delegateSpec(func(d *v1beta1.DelegateClientConfig) {
				d.Audiences = []string{"https://user:password@elsewhere.example.com"}
			})(in.Spec)
		}},
		{root + ".trustedIssuers[0].jwtBearerGrant.subjectBindings[0].allowedResources names", v1beta1.ReasonInvalidConfig, func(in *Input) {
			assertionSpec(func(j *v1beta1.JWTBearerGrantConfig) {
				j.SubjectBindings[0].AllowedResources = []string{"https://elsewhere.example.com"}
			})(in.Spec)
		}},
		{root + ".inboundGrants.jwtBearer.issuerPolicies[0].acceptedAudiences names the MCPServer's", v1beta1.ReasonInvalidConfig, func(in *Input) {
			canonicalSpec(func(s *v1beta1.EmbeddedAuthServerConfig) {
				s.InboundGrants.JWTBearer.IssuerPolicies[0].AcceptedAudiences = []string{resourceURL}
			})(in.Spec)
		}},
		{root + ".upstreamProviders has 2 entries", v1beta1.ReasonMultiUpstreamNotSupported, func(in *Input) {
			in.Spec.UpstreamProviders = append(in.Spec.UpstreamProviders, in.Spec.UpstreamProviders[0])
			in.Spec.UpstreamProviders[1].Name = "second"
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			in := goodInput()
			c.change(&in)
			if err := Validate(in.Spec); err != nil {
				t.Errorf("the configuration alone is not valid: %v", err)
			}
			result, problems := Render(in)
			if result != nil || len(problems) != 1 || problems[0].Reason != c.reason || !strings.HasPrefix(problems[0].Message, c.want) {
				t.Errorf("got %v and %v, want nothing but %s: %s…", result, problems, c.reason, c.want)
			}
		})
	}
}

// They come in a fixed order.
func TestAllProblemsAreThereAtOnce(t *testing.T) {
	in := goodInput()
	in.Audience, in.Spec.Issuer, in.Runner = "other", "", runner044
	oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) {
		o.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "gone"}}
	})(in.Spec)
	in.Spec.UpstreamProviders = append(in.Spec.UpstreamProviders, in.Spec.UpstreamProviders[0])
	in.Spec.UpstreamProviders[1].Name = "second"
	_, problems := Render(in)
	var reasons []string
	for _, p := range problems {
		reasons = append(reasons, p.Reason)
	}
	want := "InvalidConfig InvalidCABundle InvalidCABundle MultiUpstreamNotSupported InvalidConfig RunnerTooOld"
	if got := strings.Join(reasons, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatHasNoEffectIsNoticed(t *testing.T) {
	for _, c := range []struct {
		// want is how the message begins, reason its reason; both are empty for no notice.
		want, reason string
		change       func(*Input)
	}{
		{"", "", func(*Input) {}},
		{"", "", func(in *Input) { in.Replicas = new(int32(1)) }},
		{"", "", func(in *Input) { in.Issuer = " " + in.Spec.Issuer }},
		{
			root + ".issuer is \"https://mcp.example.com\", and that of spec.oidcConfigRef is \"https://mcp.example.com/\"", v1beta1.ReasonInvalidConfig,
			func(in *Input) { in.Issuer = in.Spec.Issuer + "/" },
		},
		{root + ".primaryUpstreamProvider has no effect", v1beta1.ReasonFieldsIgnored, func(in *Input) { in.Spec.PrimaryUpstreamProvider = "idp" }},
		{root + ".storage.redis.tls.caCertSecretRef has no effect", v1beta1.ReasonFieldsIgnored, func(in *Input) {
			redisSpec(func(r *v1beta1.RedisStorageConfig) {
				r.TLS = &v1beta1.RedisTLSConfig{InsecureSkipVerify: true, CACertSecretRef: &v1beta1.SecretKeyRef{Name: "as", Key: "k"}}
			})(in.Spec)
		}},
		{"", "", func(in *Input) {
			in.Spec.AuthorizationEndpointBaseURL, in.Spec.Issuer = "https://MCP.example.com:8443", "https://auth.example.com"
		}},
		{"", "", func(in *Input) {
			redisSpec(func(*v1beta1.RedisStorageConfig) {})(in.Spec)
			keys := []v1beta1.SecretKeyRef{{Name: "as", Key: "k"}}
			in.Replicas, in.Spec.SigningKeySecretRefs, in.Spec.HMACSecretRefs = new(int32(3)), keys, keys
		}},
		{"", "", func(in *Input) {
			canonicalSpec(func(s *v1beta1.EmbeddedAuthServerConfig) {
				s.InboundGrants.TokenExchange.IssuerPolicies[0].AllowMayAct = true
			})(in.Spec)
		}},
		{"", "", func(in *Input) {
			trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.ActorMatcher = "true" })(in.Spec)
		}},
		{root + ".trustedIssuers[0] accepts no token", v1beta1.ReasonFieldsIgnored, func(in *Input) { trustedSpec(func(*v1beta1.TrustedIssuerConfig) {})(in.Spec) }},
		{
			root + ".inboundGrants.tokenExchange.issuerPolicies[0] accepts no token", v1beta1.ReasonFieldsIgnored,
			func(in *Input) { canonicalSpec(func(*v1beta1.EmbeddedAuthServerConfig) {})(in.Spec) },
		},
		{root + ".trustedIssuers[0].actorMatcher matches no token", v1beta1.ReasonFieldsIgnored, func(in *Input) {
			trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.ActorMatcher = "claims.sub == 'x' ? 1 : 0" })(in.Spec)
		}},
		{root + ".storage.redis has no effect", v1beta1.ReasonFieldsIgnored, func(in *Input) {
			redisSpec(func(*v1beta1.RedisStorageConfig) {})(in.Spec)
			in.Spec.Storage.Type = v1beta1.AuthServerStorageTypeMemory
		}},
		{
			root + ".upstreamProviders[0].oidcConfig.redirectUri is on the host \"mcp.example.com\", and logins begin on \"auth.example.com\"", v1beta1.ReasonInvalidConfig,
			func(in *Input) { in.Spec.Issuer = "https://auth.example.com" },
		},
		{
			root + ".upstreamProviders[0].oidcConfig.redirectUri is on the host \"a.example.com\", and logins begin on \"mcp.example.com\"", v1beta1.ReasonInvalidConfig,
			func(in *Input) {
				oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.RedirectURI = "https://a.example.com/cb" })(in.Spec)
			},
		},
		{root + ".upstreamProviders[0].oauth2Config.redirectUri is plain http", v1beta1.ReasonInvalidConfig, func(in *Input) {
			oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) {
				o.InsecureAllowHTTP, o.RedirectURI = true, "http://mcp.example.com/cb"
			})(in.Spec)
		}},
		{
			root + ".upstreamProviders[0].oidcConfig.userInfoOverride has no effect", v1beta1.ReasonFieldsIgnored,
			func(in *Input) {
				oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.UserInfoOverride = &v1beta1.UserInfoConfig{} })(in.Spec)
			},
		},
		{root + ".inboundGrants names no grant", v1beta1.ReasonFieldsIgnored, func(in *Input) { in.Spec.InboundGrants = &v1beta1.InboundGrantsConfig{} }},
		{root + ".inboundGrants.jwtBearer has no issuer policy", v1beta1.ReasonFieldsIgnored, func(in *Input) {
			in.Spec.InboundGrants = &v1beta1.InboundGrantsConfig{JWTBearer: &v1beta1.JWTBearerInboundGrantConfig{}}
		}},
		{
			"The proxy has 2 replicas, and each has clients and sessions and a signing key and an HMAC secret of its own", v1beta1.ReasonSessionStorageMissingForReplicas,
			func(in *Input) { in.Replicas = new(int32(2)) },
		},
		{"The proxy has 2 replicas, and each has an HMAC secret of its own", v1beta1.ReasonSessionStorageMissingForReplicas, func(in *Input) {
			redisSpec(func(*v1beta1.RedisStorageConfig) {})(in.Spec)
			in.Replicas, in.Spec.SigningKeySecretRefs = new(int32(2)), []v1beta1.SecretKeyRef{{Name: "as", Key: "k"}}
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			in := goodInput()
			c.change(&in)
			result, problems := Render(in)
			if result == nil {
				t.Fatal(problems)
			}
			switch {
			case c.want == "" && len(result.Notices) > 0:
				t.Errorf("got %v, want none", result.Notices)
			case c.want != "" && (len(result.Notices) != 1 || result.Notices[0].Reason != c.reason || !strings.HasPrefix(result.Notices[0].Message, c.want)):
				t.Errorf("got %v, want %s: %s…", result.Notices, c.reason, c.want)
			}
		})
	}
}
