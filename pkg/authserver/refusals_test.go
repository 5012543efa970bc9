// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Every reason for which a configuration cannot work whatever the MCPServer is.
func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	long := strings.Repeat("a", 20000)
	ref := &v1beta1.SecretKeyRef{Name: "as", Key: "k"}
	none := &v1beta1.SecretKeyRef{}
	type spec = v1beta1.EmbeddedAuthServerConfig
	type oidc = v1beta1.OIDCUpstreamConfig
	type oauth2 = v1beta1.OAuth2UpstreamConfig
	type dcr = v1beta1.DCRUpstreamConfig
	type redis = v1beta1.RedisStorageConfig
	type delegate = v1beta1.DelegateClientConfig
	type trusted = v1beta1.TrustedIssuerConfig
	type bearer = v1beta1.JWTBearerGrantConfig
	for _, c := range []struct {
		// want is how the message begins, after spec.embeddedAuthServer.
		want   string
		change func(*spec)
	}{
		{".issuer is missing", func(s *spec) { s.Issuer = "" }},
		{".issuer must be an http or https URL", func(s *spec) { s.Issuer = "auth.example.com" }},
		{".issuer must be an http or https URL", func(s *spec) { s.Issuer = "ftp://auth.example.com" }},
		{".issuer must be an http or https URL", func(s *spec) { s.Issuer = "https://:443" }},
		{".issuer holds credentials", func(s *spec) { s.Issuer = "https://u:p@auth.example.com" }},
		{".issuer has a query or a fragment", func(s *spec) { s.Issuer = "https://auth.example.com?a=b" }},
		{".issuer has a query or a fragment", func(s *spec) { s.Issuer = "https://auth.example.com#a" }},
		{".issuer ends with a slash", func(s *spec) { s.Issuer = "https://auth.example.com/" }},
		{".issuer is plain http", func(s *spec) { s.Issuer = "http://auth.example.com" }},
		{".authorizationEndpointBaseUrl is plain http", func(s *spec) { s.AuthorizationEndpointBaseURL = "http://login.example.com" }},
		{".signingKeySecretRefs has more than 5", func(s *spec) { s.SigningKeySecretRefs = slicesRepeat(*ref, 6) }},
		{".signingKeySecretRefs[1] does not name", func(s *spec) { s.SigningKeySecretRefs = []v1beta1.SecretKeyRef{*ref, {Name: "as"}} }},
		{".hmacSecretRefs[0] does not name", func(s *spec) { s.HMACSecretRefs = []v1beta1.SecretKeyRef{{Key: "k"}} }},
		{".hmacSecretRefs[0].key is not a key", func(s *spec) { s.HMACSecretRefs = []v1beta1.SecretKeyRef{{Name: "as", Key: "../k"}} }},
		{".tokenLifespans.accessTokenLifespan must be a duration", func(s *spec) { s.TokenLifespans = &v1beta1.TokenLifespanConfig{AccessTokenLifespan: "1d"} }},
		{".tokenLifespans.accessTokenLifespan is 25h0m0s", func(s *spec) { s.TokenLifespans = &v1beta1.TokenLifespanConfig{AccessTokenLifespan: "25h"} }},
		{".tokenLifespans.refreshTokenLifespan is 59m0s", func(s *spec) { s.TokenLifespans = &v1beta1.TokenLifespanConfig{RefreshTokenLifespan: "59m"} }},
		{".tokenLifespans.authCodeLifespan is 11m0s", func(s *spec) { s.TokenLifespans = &v1beta1.TokenLifespanConfig{AuthCodeLifespan: "11m"} }},
		{".tlsListener.certificateSecretRef does not name", func(s *spec) { s.TLSListener = &v1beta1.TLSListenerConfig{PrivateKeySecretRef: *ref} }},
		{".tlsListener.privateKeySecretRef does not name", func(s *spec) { s.TLSListener = &v1beta1.TLSListenerConfig{CertificateSecretRef: *ref} }},

		{".upstreamProviders[0].name is \"A\"", func(s *spec) { s.UpstreamProviders[0].Name = "A" }},
		{".upstreamProviders[0].name is \"default\"", func(s *spec) {
			s.UpstreamProviders = append(s.UpstreamProviders, s.UpstreamProviders[0])
			s.UpstreamProviders[0].Name = "default"
		}},
		{".upstreamProviders[1].name is that of upstreamProviders[0]", func(s *spec) { s.UpstreamProviders = append(s.UpstreamProviders, s.UpstreamProviders[0]) }},
		{".upstreamProviders[1].name is \"a_b\"", func(s *spec) { // the variables of a-b are the same
			s.UpstreamProviders = append(s.UpstreamProviders, s.UpstreamProviders[0])
			s.UpstreamProviders[0].Name, s.UpstreamProviders[1].Name = "a-b", "a_b"
		}},
		{".upstreamProviders[0] does not have the one member", func(s *spec) { s.UpstreamProviders[0].Type = "oauth2" }},
		{".upstreamProviders[0] does not have the one member", func(s *spec) { s.UpstreamProviders[0].OAuth2Config = &oauth2{} }},
		{".upstreamProviders[0] does not have the one member", func(s *spec) { s.UpstreamProviders[0].OIDCConfig = nil }},
		{".upstreamProviders[0] does not have the one member", func(s *spec) { s.UpstreamProviders[0].Type = "saml" }},
		{".upstreamProviders[0].oidcConfig.issuerUrl is missing", oidcSpec(func(o *oidc) { o.IssuerURL = "" })},
		{".upstreamProviders[0].oidcConfig.issuerUrl must be an http or https URL", oidcSpec(func(o *oidc) { o.IssuerURL = "https://" })},
		{".upstreamProviders[0].oidcConfig.issuerUrl is plain http", oidcSpec(func(o *oidc) { o.IssuerURL = "http://okta.example.com" })},
		{".upstreamProviders[0].oidcConfig.clientId is missing", oidcSpec(func(o *oidc) { o.ClientID = "" })},
		{".upstreamProviders[0].oidcConfig.clientId and dcrConfig", oidcSpec(func(o *oidc) { o.DCRConfig = &dcr{} })},
		{".upstreamProviders[0].oidcConfig.clientSecretRef and dcrConfig", oidcSpec(func(o *oidc) { o.ClientID, o.DCRConfig, o.ClientSecretRef = "", &dcr{}, ref })},
		{".upstreamProviders[0].oidcConfig.clientSecretRef does not name", oidcSpec(func(o *oidc) { o.ClientSecretRef = none })},
		{".upstreamProviders[0].oidcConfig.redirectUri is plain http", oidcSpec(func(o *oidc) { o.RedirectURI = "http://mcp.example.com/cb" })},
		{".upstreamProviders[0].oidcConfig.redirectUri is plain http", oidcSpec(func(o *oidc) { o.RedirectURI = "http://LOCALHOST/cb" })},
		{".upstreamProviders[0].oidcConfig.redirectUri must be an http or https URL", oidcSpec(func(o *oidc) { o.RedirectURI = "/cb" })},
		{".upstreamProviders[0].oidcConfig.redirectUri has a fragment", oidcSpec(func(o *oidc) { o.RedirectURI = "https://mcp.example.com/cb#a" })},
		{".upstreamProviders[0].oidcConfig.redirectUri is longer", oidcSpec(func(o *oidc) { o.RedirectURI = "https://mcp.example.com/" + long })},
		{".upstreamProviders[0].oidcConfig.scopes lacks openid", oidcSpec(func(o *oidc) { o.Scopes = []string{"email"} })},
		{".upstreamProviders[0].oidcConfig.additionalAuthorizationParams sets nonce", oidcSpec(func(o *oidc) {
			o.AdditionalAuthorizationParams = map[string]string{"nonce": "n", "prompt": "login"}
		})},
		{".upstreamProviders[0].oidcConfig.additionalTokenParams sets client_assertion,", oidcSpec(func(o *oidc) {
			o.AdditionalTokenParams = map[string]string{"client_assertion": "c"}
		})},
		{".upstreamProviders[0].oidcConfig.additionalTokenParams[resource] must be an absolute URI", oidcSpec(func(o *oidc) {
			o.AdditionalTokenParams = map[string]string{"resource": "r"}
		})},
		{".upstreamProviders[0].oidcConfig.additionalTokenParams[resource] must be an absolute URI", oidcSpec(func(o *oidc) {
			o.AdditionalTokenParams = map[string]string{"resource": "https://r.example.com/#"}
		})},
		{".upstreamProviders[0].oidcConfig.subjectClaim is \"a.b\"", oidcSpec(func(o *oidc) { o.SubjectClaim = "a.b" })},
		{".upstreamProviders[0].oidcConfig.caBundleRef.configMapRef.name is missing", oidcSpec(func(o *oidc) { o.CABundleRef = &v1beta1.CABundleSource{} })},

		{".upstreamProviders[0].oauth2Config.authorizationEndpoint is missing", oauth2Spec(func(o *oauth2) { o.AuthorizationEndpoint = "" })},
		{".upstreamProviders[0].oauth2Config.tokenEndpoint is plain http", oauth2Spec(func(o *oauth2) { o.TokenEndpoint = "http://git.example.com" })},
		{".upstreamProviders[0].oauth2Config.clientId is missing", oauth2Spec(func(o *oauth2) { o.ClientID = "" })},
		{".upstreamProviders[0].oauth2Config.dcrConfig does not say where", dcrSpec(dcr{})},
		{".upstreamProviders[0].oauth2Config.dcrConfig has discoveryUrl and", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", RegistrationEndpoint: "https://b.example.com"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.discoveryUrl is longer", dcrSpec(dcr{DiscoveryURL: "https://" + long})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.registrationEndpoint is plain http", dcrSpec(dcr{RegistrationEndpoint: "http://a.example.com"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.softwareStatement is longer", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", SoftwareStatement: long})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.rotationKey must be", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", RotationKey: "a b"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.registrationProbe is \"x\"", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", RegistrationProbe: "x"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.registrationProbeInterval must be a duration of", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", RegistrationProbeInterval: "59s"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.registrationProbeInterval must be a duration of", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", RegistrationProbeInterval: "x"})},
		{".upstreamProviders[0].oauth2Config.dcrConfig.initialAccessTokenRef does not", dcrSpec(dcr{DiscoveryURL: "https://a.example.com", InitialAccessTokenRef: none})},
		{".upstreamProviders[0].oauth2Config.tokenEndpointAuthMethod is none", oauth2Spec(func(o *oauth2) { o.TokenEndpointAuthMethod, o.ClientSecretRef = "none", ref })},
		{".upstreamProviders[0].oauth2Config.tokenEndpointAuthMethod is client_secret_post", oauth2Spec(func(o *oauth2) { o.TokenEndpointAuthMethod = "client_secret_post" })},
		{".upstreamProviders[0].oauth2Config.tokenEndpointAuthMethod is \"tls\"", oauth2Spec(func(o *oauth2) { o.TokenEndpointAuthMethod = "tls" })},
		{".upstreamProviders[0].oauth2Config.redirectUri is plain http", oauth2Spec(func(o *oauth2) { o.RedirectURI = "http://mcp.example.com" })},
		{".upstreamProviders[0].oauth2Config.additionalAuthorizationParams sets state", oauth2Spec(func(o *oauth2) {
			o.AdditionalAuthorizationParams = map[string]string{"state": "s"}
		})},
		{".upstreamProviders[0].oauth2Config.userInfo.endpointUrl must be an", oauth2Spec(func(o *oauth2) { o.UserInfo = &v1beta1.UserInfoConfig{} })},
		{".upstreamProviders[0].oauth2Config.userInfo.endpointUrl is plain http", oauth2Spec(func(o *oauth2) {
			o.InsecureAllowHTTP, o.UserInfo = true, &v1beta1.UserInfoConfig{EndpointURL: "http://git.example.com"}
		})},
		{".upstreamProviders[0].oauth2Config.userInfo.httpMethod is \"PUT\"", oauth2Spec(func(o *oauth2) {
			o.UserInfo = &v1beta1.UserInfoConfig{EndpointURL: "https://git.example.com", HTTPMethod: "PUT"}
		})},
		{".upstreamProviders[0].oauth2Config.tokenResponseMapping.accessTokenPath is missing", oauth2Spec(func(o *oauth2) {
			o.TokenResponseMapping = &v1beta1.TokenResponseMapping{}
		})},
		{".upstreamProviders[0].oauth2Config.identityFromToken.subjectPath is missing", oauth2Spec(func(o *oauth2) {
			o.IdentityFromToken = &v1beta1.IdentityFromTokenConfig{}
		})},
		{".upstreamProviders[0].oauth2Config.caBundleRef.configMapRef.name is missing", oauth2Spec(func(o *oauth2) {
			o.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Key: "k"}}
		})},

		{".storage.maxDCRClients is negative", func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{MaxDCRClients: new(int32(-1))} }},
		{".storage.type is \"disk\"", func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{Type: "disk"} }},
		{".storage.type is \"" + long[:64] + "…\".", func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{Type: v1beta1.AuthServerStorageType(long)} }},
		{".storage.redis is missing", func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{Type: "redis"} }},
		{".storage.redis names no Redis", redisSpec(func(r *redis) { r.Addr = "" })},
		{".storage.redis has addr and sentinelConfig", redisSpec(func(r *redis) { r.SentinelConfig = &v1beta1.RedisSentinelConfig{} })},
		{".storage.redis.clusterMode needs addr", redisSpec(func(r *redis) {
			r.Addr, r.ClusterMode, r.SentinelConfig = "", true, &v1beta1.RedisSentinelConfig{MasterName: "m", SentinelAddrs: []string{"s:1"}}
		})},
		{".storage.redis.sentinelConfig.masterName is missing", redisSpec(func(r *redis) {
			r.Addr, r.SentinelConfig = "", &v1beta1.RedisSentinelConfig{SentinelAddrs: []string{"s:1"}}
		})},
		{".storage.redis.sentinelConfig names no sentinel", redisSpec(func(r *redis) { r.Addr, r.SentinelConfig = "", &v1beta1.RedisSentinelConfig{MasterName: "m"} })},
		{".storage.redis.sentinelConfig.sentinelService.name is missing", redisSpec(func(r *redis) {
			r.Addr, r.SentinelConfig = "", &v1beta1.RedisSentinelConfig{MasterName: "m", SentinelService: &v1beta1.SentinelServiceRef{}}
		})},
		{".storage.redis.aclUserConfig.usernameSecretRef does not name", redisSpec(func(r *redis) { r.ACLUserConfig.UsernameSecretRef = none })},
		{".storage.redis.aclUserConfig.passwordSecretRef does not name", redisSpec(func(r *redis) { r.ACLUserConfig.PasswordSecretRef = *none })},
		{".storage.redis.dialTimeout must be a duration", redisSpec(func(r *redis) { r.DialTimeout = "5" })},
		{".storage.redis.readTimeout must be a duration", redisSpec(func(r *redis) { r.ReadTimeout = "x" })},
		{".storage.redis.writeTimeout must be a duration", redisSpec(func(r *redis) { r.WriteTimeout = "x" })},
		{".storage.redis.tls.caCertSecretRef does not name", redisSpec(func(r *redis) { r.TLS = &v1beta1.RedisTLSConfig{CACertSecretRef: none} })},
		{".storage.redis.sentinelTls.caCertSecretRef does not name", func(s *spec) {
			s.Storage = &v1beta1.AuthServerStorageConfig{Redis: &redis{SentinelTLS: &v1beta1.RedisTLSConfig{CACertSecretRef: none}}}
		}},

		{".spiffeTrustDomains asks for SPIFFE", func(s *spec) { s.SPIFFETrustDomains = []v1beta1.SPIFFETrustDomainConfig{{}} }},
		{".inboundGrants.spiffeClientAuth asks for SPIFFE", func(s *spec) {
			s.InboundGrants = &v1beta1.InboundGrantsConfig{SPIFFEClientAuth: []v1beta1.SPIFFEClientConfig{{}}}
		}},

		{".trustedIssuers[0].issuerUrl must be an http or https URL", trustedSpec(func(t *trusted) { t.IssuerURL = "" })},
		{".trustedIssuers[0].issuerUrl holds credentials", trustedSpec(func(t *trusted) { t.IssuerURL = "https://u:p@t.example.com" })},
		{".trustedIssuers[0].issuerUrl has a query or a fragment", trustedSpec(func(t *trusted) { t.IssuerURL = "https://t.example.com?a" })},
		{".trustedIssuers[0].issuerUrl is plain http", trustedSpec(func(t *trusted) { t.IssuerURL = "http://localhost" })},
		{".trustedIssuers[0].issuerUrl is the authorization server itself", trustedSpec(func(t *trusted) { t.IssuerURL = goodSpec().Issuer })},
		{".trustedIssuers[0].allowPrivateIPs needs jwksUrl", trustedSpec(func(t *trusted) { t.AllowPrivateIPs = true })},
		{".trustedIssuers[0].jwksUrl must be an http or https URL", trustedSpec(func(t *trusted) { t.JWKSURL = "file:///etc/passwd" })},
		{".trustedIssuers[0].jwksUrl holds credentials", trustedSpec(func(t *trusted) { t.JWKSURL = "https://u:p@t.example.com" })},
		{".trustedIssuers[0].jwksUrl has a fragment", trustedSpec(func(t *trusted) { t.JWKSURL = "https://t.example.com#a" })},
		{".trustedIssuers[0].jwksUrl is plain http", trustedSpec(func(t *trusted) { t.JWKSURL = "http://t.example.com" })},
		{".trustedIssuers[0].jwksUrl is a private or reserved address", trustedSpec(func(t *trusted) { t.JWKSURL = "https://169.254.169.254/" })},
		{".trustedIssuers[0].caBundleRef.configMapRef.name is missing", trustedSpec(func(t *trusted) { t.CABundleRef = &v1beta1.CABundleSource{} })},
		{".trustedIssuers[1].issuerUrl is that of trustedIssuers[0]", func(s *spec) {
			trustedSpec(func(*trusted) {})(s)
			s.TrustedIssuers = append(s.TrustedIssuers, s.TrustedIssuers[0])
		}},
		{".trustedIssuers[1].name is that of trustedIssuers[0]", func(s *spec) {
			trustedSpec(func(*trusted) {})(s)
			s.TrustedIssuers = append(s.TrustedIssuers, s.TrustedIssuers[0])
			s.TrustedIssuers[1].IssuerURL = "https://other.example.com"
		}},
		{".trustedIssuers[0].expectedAudience is missing, and there is no JWT-bearer", trustedSpec(func(t *trusted) { t.ExpectedAudience = "" })},
		{".trustedIssuers[0].expectedAudience is missing, and a policy", trustedSpec(func(t *trusted) {
			t.ExpectedAudience, t.AllowedActors, t.JWTBearerGrant = "", []string{"a"}, goodAssertions()
		})},
		{".trustedIssuers[0].actorClaim is sub", trustedSpec(func(t *trusted) { t.ActorClaim = "sub" })},
		{".trustedIssuers[0].allowedDelegateClients is empty", trustedSpec(func(t *trusted) { t.AllowedDelegateClients = nil })},
		{".trustedIssuers[0].allowedDelegateClients has an empty entry", trustedSpec(func(t *trusted) { t.AllowedDelegateClients = []string{""} })},
		{".trustedIssuers[0].allowedDelegateClients names * and clients", trustedSpec(func(t *trusted) { t.AllowedDelegateClients = []string{"*", "a"} })},
		{".trustedIssuers[0].allowMayAct excludes *", trustedSpec(func(t *trusted) { t.AllowMayAct, t.AllowedDelegateClients = true, []string{"*"} })},
		{".trustedIssuers[0].jwtBearerGrant.maxAssertionAge must be a positive", assertionSpec(func(j *bearer) { j.MaxAssertionAge = "" })},
		{".trustedIssuers[0].jwtBearerGrant.maxAssertionAge must be a positive", assertionSpec(func(j *bearer) { j.MaxAssertionAge = "0s" })},
		{".trustedIssuers[0].jwtBearerGrant.subjectBindings is empty", assertionSpec(func(j *bearer) { j.SubjectBindings = nil })},
		{".trustedIssuers[0].jwtBearerGrant.subjectBindings[0].subject must name", assertionSpec(func(j *bearer) { j.SubjectBindings[0].Subject = "*" })},
		{".trustedIssuers[0].jwtBearerGrant.subjectBindings[1].subject is that of", assertionSpec(func(j *bearer) { j.SubjectBindings = append(j.SubjectBindings, j.SubjectBindings[0]) })},
		{".trustedIssuers[0].jwtBearerGrant.subjectBindings[0].allowedResources is empty", assertionSpec(func(j *bearer) { j.SubjectBindings[0].AllowedResources = nil })},
		{".trustedIssuers[0].jwtBearerGrant.subjectBindings[0].allowedResources[0] must be an http", assertionSpec(func(j *bearer) {
			j.SubjectBindings[0].AllowedResources = []string{"*"}
		})},
		{".trustedIssuers[0].jwtBearerGrant.acceptedAudiences[0] has a fragment", assertionSpec(func(j *bearer) { j.AcceptedAudiences = []string{"https://a.example.com#b"} })},

		{".inboundGrants.tokenExchange excludes delegateClients", canonicalSpec(func(s *spec) { s.DelegateClients = []delegate{goodDelegate()} })},
		{".inboundGrants.tokenExchange excludes delegateClients", canonicalSpec(func(s *spec) { s.TrustedIssuers[0].ExpectedAudience = "aud" })},
		{".inboundGrants.jwtBearer excludes jwtBearerGrant", canonicalSpec(func(s *spec) { s.TrustedIssuers[0].JWTBearerGrant = goodAssertions() })},
		{".inboundGrants.tokenExchange.issuerPolicies[0].issuerRef is \"x\"", canonicalSpec(func(s *spec) { s.InboundGrants.TokenExchange.IssuerPolicies[0].IssuerRef = "x" })},
		{".inboundGrants.tokenExchange.issuerPolicies[1].issuerRef is that of", canonicalSpec(func(s *spec) {
			x := s.InboundGrants.TokenExchange
			x.IssuerPolicies = append(x.IssuerPolicies, x.IssuerPolicies[0])
		})},
		{".inboundGrants.jwtBearer.issuerPolicies[0].issuerRef is \"\"", canonicalSpec(func(s *spec) { s.InboundGrants.JWTBearer.IssuerPolicies[0].IssuerRef = "" })},
		{".inboundGrants.tokenExchange.issuerPolicies[0].actorClaim is iss", canonicalSpec(func(s *spec) { s.InboundGrants.TokenExchange.IssuerPolicies[0].ActorClaim = "iss" })},
		{".inboundGrants.tokenExchange.issuerPolicies[0].actorMatcher is not a CEL expression over claims: line 1, column 1", canonicalSpec(func(s *spec) {
			s.InboundGrants.TokenExchange.IssuerPolicies[0].ActorMatcher = "claim.sub == 'x'"
		})},
		{".inboundGrants.jwtBearer.issuerPolicies[0].maxAssertionAge must be", canonicalSpec(func(s *spec) { s.InboundGrants.JWTBearer.IssuerPolicies[0].MaxAssertionAge = "x" })},
		{".inboundGrants.tokenExchange.delegateClients[0].scopes is empty", canonicalSpec(func(s *spec) { s.InboundGrants.TokenExchange.DelegateClients[0].Scopes = nil })},

		{".delegateClients[0].clientId is missing", delegateSpec(func(d *delegate) { d.ClientID = "" })},
		{".delegateClients[0].clientId is a URL", delegateSpec(func(d *delegate) { d.ClientID = "https://" })},
		{".delegateClients[0].clientId is a URL", delegateSpec(func(d *delegate) { d.ClientID = "http://127.0.0.1/c" })},
		{".delegateClients[0].clientSecretRef does not name", delegateSpec(func(d *delegate) { d.ClientSecretRef.Key = "" })},
		{".delegateClients[0].scopes is empty", delegateSpec(func(d *delegate) { d.Scopes = nil })},
		{".delegateClients[0].audiences is empty", delegateSpec(func(d *delegate) { d.Audiences = nil })},
		{".delegateClients[1].clientId is that of delegateClients[0]", func(s *spec) { s.DelegateClients = slicesRepeat(goodDelegate(), 2) }},
		{".delegateClients and insecureAllowHTTP exclude", func(s *spec) { s.InsecureAllowHTTP, s.DelegateClients = true, []delegate{goodDelegate()} }},
		{".inboundGrants.tokenExchange.delegateClients and insecureAllowHTTP exclude", canonicalSpec(func(s *spec) { s.InsecureAllowHTTP = true })},
		{".allowConfidentialClientRegistration and insecureAllowHTTP exclude", func(s *spec) { s.InsecureAllowHTTP, s.AllowConfidentialClientRegistration = true, true }},
		{".issuer is plain http", func(s *spec) { s.Issuer, s.AllowConfidentialClientRegistration = "http://auth.example.com", true }},
		{".allowConfidentialClientRegistration needs an issuer with https, or", func(s *spec) { s.Issuer, s.AllowConfidentialClientRegistration = "http://localhost", true }},

		{".forceConfidentialRedirectUris needs allowConfidential", func(s *spec) { s.ForceConfidentialRedirectURIs = []string{"https://app.example.com"} }},
		{".forceConfidentialRedirectUris[0] must be an http", func(s *spec) {
			s.AllowConfidentialClientRegistration, s.ForceConfidentialRedirectURIs = true, []string{"cb"}
		}},
		{".forceConfidentialRedirectUris[0] is on loopback", func(s *spec) {
			s.AllowConfidentialClientRegistration, s.ForceConfidentialRedirectURIs = true, []string{"https://127.0.0.1/cb"}
		}},
		{".forceConfidentialRedirectUris[0] is on loopback", func(s *spec) {
			s.AllowConfidentialClientRegistration, s.ForceConfidentialRedirectURIs = true, []string{"http://app.localhost/cb"}
		}},
		{".allowPrivateKeyJWTRegistration needs token exchange", func(s *spec) {
			s.AllowPrivateKeyJWTRegistration, s.InboundGrants = true, &v1beta1.InboundGrantsConfig{}
		}},
		{".registrationRateLimit.maxTokens must be", func(s *spec) { s.RegistrationRateLimit = &v1beta1.RateLimitBucket{RefillPeriod: "1m"} }},
		{".registrationRateLimit.refillPeriod must be a positive", func(s *spec) { s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "0s"} }},
		{".cimd.cacheMaxSize is negative", func(s *spec) { s.CIMD = &v1beta1.EmbeddedAuthServerCIMDConfig{Enabled: true, CacheMaxSize: -1} }},
		{".cimd.cacheFallbackTtl must be a positive", func(s *spec) { s.CIMD = &v1beta1.EmbeddedAuthServerCIMDConfig{Enabled: true, CacheFallbackTTL: "-1m"} }},
		{" issues no token", func(s *spec) { s.UpstreamProviders = nil }},
		{" issues no token", func(s *spec) {
			s.UpstreamProviders, s.InboundGrants = nil, &v1beta1.InboundGrantsConfig{JWTBearer: &v1beta1.JWTBearerInboundGrantConfig{}}
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			in := goodInput()
			c.change(in.Spec)
			err := Validate(in.Spec)
			if err == nil || !strings.HasPrefix(err.Error(), root+c.want) {
				t.Errorf("Validate says %v, want %s%s…", err, root, c.want)
			}
			result, problems := Render(in)
			if result != nil || len(problems) == 0 || problems[0].Reason != v1beta1.ReasonInvalidConfig {
				t.Errorf("Render returned %v and %v, want nothing but a problem with the reason %s", result, problems, v1beta1.ReasonInvalidConfig)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Errorf("the message holds credentials: %v", err)
			}
		})
	}
	if err := Validate(nil); err == nil {
		t.Error("no configuration at all is valid")
	}
	if _, problems := Render(Input{}); len(problems) != 1 || problems[0].Reason != v1beta1.ReasonInvalidConfig {
		t.Errorf("no configuration at all: got %v", problems)
	}
}

// What lies just on the other side of a rule.
func TestConfigurationsThatKeepTheRulesAreAccepted(t *testing.T) {
	type spec = v1beta1.EmbeddedAuthServerConfig
	for name, change := range map[string]func(*spec){
		"as it is":             func(*spec) {},
		"http on loopback":     func(s *spec) { s.Issuer = "http://[::1]:8080" },
		"http that is allowed": func(s *spec) { s.Issuer, s.InsecureAllowHTTP = "http://auth.example.com", true },
		"redirect on loopback": oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.RedirectURI = "http://app.localhost:8080/cb" }),
		"redirect that is allowed": oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) {
			o.InsecureAllowHTTP, o.RedirectURI = true, "http://mcp.example.com/cb"
		}),
		"registration by issuer": oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.ClientID, o.DCRConfig = "", &v1beta1.DCRUpstreamConfig{} }),
		"registration with a method": oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) {
			o.ClientID, o.TokenEndpointAuthMethod, o.DCRConfig = "", "client_secret_post", &v1beta1.DCRUpstreamConfig{DiscoveryURL: "https://a.example.com", RegistrationProbeInterval: "1m"}
		}),
		"user information, loopback": oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) {
			o.UserInfo = &v1beta1.UserInfoConfig{EndpointURL: "http://127.0.0.1/me"}
		}),
		"legacy grants":           delegateSpec(func(*v1beta1.DelegateClientConfig) {}),
		"legacy issuer":           trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.IssuerURL = "https://login.example.com/tenant/" }),
		"legacy assertions":       assertionSpec(func(*v1beta1.JWTBearerGrantConfig) {}),
		"canonical grants":        canonicalSpec(func(*spec) {}),
		"canonical beside legacy": canonicalSpec(func(s *spec) { s.InboundGrants.JWTBearer, s.TrustedIssuers[0].JWTBearerGrant = nil, goodAssertions() }),
		"no upstream, a client":   canonicalSpec(func(s *spec) { s.UpstreamProviders = nil }),
		"no upstream, assertions": assertionSpec(func(*v1beta1.JWTBearerGrantConfig) {}),
		"secret over loopback": func(s *spec) {
			s.Issuer, s.AllowConfidentialClientRegistration, s.InsecureAllowConfidentialOverLoopbackHTTP = "http://localhost", true, true
		},
		"private keys":            canonicalSpec(func(s *spec) { s.AllowPrivateKeyJWTRegistration = true }),
		"a private address":       trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.AllowPrivateIPs, t.JWKSURL = true, "https://10.0.0.1/jwks" }),
		"metadata documents, off": func(s *spec) { s.CIMD = &v1beta1.EmbeddedAuthServerCIMDConfig{CacheMaxSize: -1} },
		"lifespans at their bounds": func(s *spec) {
			s.TokenLifespans = &v1beta1.TokenLifespanConfig{AccessTokenLifespan: "24h", RefreshTokenLifespan: "1h", AuthCodeLifespan: "10m"}
		},
		"lifespans by default":         func(s *spec) { s.TokenLifespans = &v1beta1.TokenLifespanConfig{AccessTokenLifespan: "0s"} },
		"storage without a type":       func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{} },
		"a client that looks like one": delegateSpec(func(d *v1beta1.DelegateClientConfig) { d.ClientID = "http://c.example.com" }),
	} {
		t.Run(name, func(t *testing.T) {
			in := goodInput()
			change(in.Spec)
			if err := Validate(in.Spec); err != nil {
				t.Error(err)
			}
			if result, problems := Render(in); result == nil {
				t.Error(problems)
			}
		})
	}
}
