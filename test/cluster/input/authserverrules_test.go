// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import "strings"

const (
	wildcardAlone = `allowedDelegateClients must not combine the wildcard "*" with specific client IDs`
	mayActNamed   = `allowMayAct must not be enabled when allowedDelegateClients contains the wildcard "*"`
	readableClaim = "actorClaim must name a readable claim; use client_id or a non-reserved claim such as azp, appid, or cid"
	bothNamed     = "clientSecretRef.name and clientSecretRef.key are required and must be non-empty"
	positiveAge   = "maxAssertionAge must be greater than zero"
	subjectsOnce  = "subjectBindings must not contain duplicate subjects"
	oneClient     = "exactly one of clientId or dcrConfig must be set"
	noSecret      = "clientSecretRef must not be set when dcrConfig is set; the client_secret is obtained at runtime via Dynamic Client Registration"
	oneEndpoint   = "at most one of discoveryUrl or registrationEndpoint may be set"
	twoEndpoints  = `dcrConfig: {discoveryUrl: "https://u/d", registrationEndpoint: "https://u/r"}`
	oneMinute     = "registrationProbeInterval must be at least 1m"
)

func unnamed(text string) string {
	return strings.ReplaceAll(text, "{name: s, key: k}", "{name: s, key: \"\"}")
}

// authServerRules are the rules at and below spec.embeddedAuthServer. An issuer is added to what has none.
var authServerRules = []kindRule{
	{"", "at least one upstream provider or inbound grant family is required", upstream, `upstreamProviders: []`},
	{"", "spiffeTrustDomains and inboundGrants.spiffeClientAuth must be configured together", spiffe, upstream + `, spiffeTrustDomains: [` + spiffeDomain + `]`},
	{
		"", "spiffeTrustDomains must not contain duplicate names", spiffe,
		withDomains(spiffeDomain + `, ` + strings.ReplaceAll(spiffeDomain, "example.org", "example.com")),
	},
	{
		"", "spiffeTrustDomains must not contain duplicate trust domains", spiffe,
		withDomains(spiffeDomain + `, ` + strings.ReplaceAll(spiffeDomain, "name: d", "name: e")),
	},
	{
		"", "every SPIFFE trust domain must be referenced by a SPIFFE client", spiffe,
		withDomains(spiffeDomain + `, ` + strings.NewReplacer("name: d", "name: e", "example.org", "example.com").Replace(spiffeDomain)),
	},
	{
		"", "every SPIFFE client trustDomainRef must reference a declared trust domain", spiffe,
		withClients(spiffeClient + `, ` + strings.NewReplacer("Ref: d", "Ref: e", "clientId: c", "clientId: e", "/w", "/e").Replace(spiffeClient)),
	},
	{
		"", "spiffeClientAuth methods must be enabled by the referenced trust domain", spiffe,
		withClients(strings.ReplaceAll(spiffeClient, "spiffe_jwt", "spiffe_x509")),
	},
	{
		"", "spiffeClientAuth principalPattern trust domain must match the referenced trust domain", spiffe,
		withClients(strings.ReplaceAll(spiffeClient, "example.org", "example.com")),
	},
	{
		"", "spiffeClientAuth must not contain duplicate client IDs",
		withClients(spiffeClient + `, ` + strings.NewReplacer("clientId: c", "clientId: e", "/w", "/e").Replace(spiffeClient)),
		withClients(spiffeClient + `, ` + strings.ReplaceAll(spiffeClient, "/w", "/e")),
	},
	{
		"", "spiffeClientAuth must not contain duplicate principal patterns", spiffe,
		withClients(spiffeClient + `, ` + strings.ReplaceAll(spiffeClient, "clientId: c", "clientId: e")),
	},
	{
		"", "spiffeClientAuth clientId must not use the reserved synthetic: prefix", spiffe,
		withClients(strings.ReplaceAll(spiffeClient, "clientId: c", `clientId: "synthetic:c"`)),
	},
	{
		"", "spiffeClientAuth clientId must not be an absolute URL", spiffe,
		withClients(strings.ReplaceAll(spiffeClient, "clientId: c", `clientId: "https://c"`)),
	},
	{
		"", "insecureAllowHTTP cannot be combined with confidential client registration or delegateClients; " +
			"client secrets would be issued or used in cleartext over an unauthenticated endpoint",
		upstream + `, insecureAllowHTTP: true`, upstream + `, insecureAllowHTTP: true, delegateClients: [` + client + `]`,
	},
	{
		"", "forceConfidentialRedirectUris requires allowConfidentialClientRegistration to be true",
		upstream + `, forceConfidentialRedirectUris: ["https://r"], allowConfidentialClientRegistration: true`,
		upstream + `, forceConfidentialRedirectUris: ["https://r"]`,
	},
	{
		"", "confidential client registration or delegateClients with an HTTP issuer require insecureAllowConfidentialOverLoopbackHTTP " +
			"to be explicitly enabled; the issuer must still be loopback",
		upstream + `, issuer: "http://localhost", allowConfidentialClientRegistration: true, insecureAllowConfidentialOverLoopbackHTTP: true`,
		upstream + `, issuer: "http://localhost", allowConfidentialClientRegistration: true`,
	},
	{
		"", "canonical tokenExchange conflicts with legacy delegateClients or RFC 8693 trusted issuer policy",
		`inboundGrants: {tokenExchange: {delegateClients: [` + client + `]}}`,
		`inboundGrants: {tokenExchange: {}}, delegateClients: [` + client + `]`,
	},
	{
		"", "canonical jwtBearer conflicts with legacy jwtBearerGrant", withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 5m, ` + binding + `}`),
		withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 5m, `+binding+`}`) + `, inboundGrants: {jwtBearer: {}}`,
	},
	{
		"", "trustedIssuers must not contain duplicate names",
		upstream + `, trustedIssuers: [{name: i, issuerUrl: "https://i"}, {name: j, issuerUrl: "https://j"}]`,
		upstream + `, trustedIssuers: [{name: i, issuerUrl: "https://i"}, {name: i, issuerUrl: "https://j"}]`,
	},
	{
		"", "every tokenExchange issuerRef must reference a named trusted issuer",
		trustedIssuer + `, inboundGrants: {tokenExchange: {issuerPolicies: [` + issuerPolicy + `]}}`,
		`inboundGrants: {tokenExchange: {issuerPolicies: [` + issuerPolicy + `]}}`,
	},
	{
		"", "tokenExchange issuerPolicies must not contain duplicate issuerRef values",
		trustedIssuer + `, inboundGrants: {tokenExchange: {issuerPolicies: [` + issuerPolicy + `]}}`,
		trustedIssuer + `, inboundGrants: {tokenExchange: {issuerPolicies: [` + issuerPolicy + `, ` + issuerPolicy + `]}}`,
	},
	{
		"", "every jwtBearer issuerRef must reference a named trusted issuer",
		trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `]}}`,
		`inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `]}}`,
	},
	{
		"", "jwtBearer issuerPolicies must not contain duplicate issuerRef values",
		trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `]}}`,
		trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `, ` + assert + `]}}`,
	},
	{".delegateClients[]", bothNamed, `delegateClients: [` + client + `]`, unnamed(`delegateClients: [` + client + `]`)},
	{
		".inboundGrants.tokenExchange.delegateClients[]", bothNamed, `inboundGrants: {tokenExchange: {delegateClients: [` + client + `]}}`,
		unnamed(`inboundGrants: {tokenExchange: {delegateClients: [` + client + `]}}`),
	},
	{
		".inboundGrants.jwtBearer.issuerPolicies[]", positiveAge, trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `]}}`,
		trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + strings.ReplaceAll(assert, "5m", "0s") + `]}}`,
	},
	{
		".inboundGrants.jwtBearer.issuerPolicies[]", subjectsOnce, trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + assert + `]}}`,
		trustedIssuer + `, inboundGrants: {jwtBearer: {issuerPolicies: [` + twice(assert) + `]}}`,
	},
	{
		".inboundGrants.spiffeClientAuth[]", "principalPattern path must not contain . or .. segments", spiffe,
		withClients(strings.ReplaceAll(spiffeClient, "/w", "/../w")),
	},
	{".inboundGrants.tokenExchange.issuerPolicies[]", wildcardAlone, withPolicy(`allowedDelegateClients: ["*"]`), withPolicy(`allowedDelegateClients: ["*", c]`)},
	{
		".inboundGrants.tokenExchange.issuerPolicies[]", mayActNamed, withPolicy(`allowedDelegateClients: [c], allowMayAct: true`),
		withPolicy(`allowedDelegateClients: ["*"], allowMayAct: true`),
	},
	{
		".inboundGrants.tokenExchange.issuerPolicies[]", readableClaim, withPolicy(`allowedDelegateClients: [c], actorClaim: azp`),
		withPolicy(`allowedDelegateClients: [c], actorClaim: sub`),
	},
	{
		".registrationRateLimit", "registrationRateLimit.refillPeriod must be positive", upstream + `, registrationRateLimit: {maxTokens: 1, refillPeriod: 1s}`,
		upstream + `, registrationRateLimit: {maxTokens: 1, refillPeriod: 0s}`,
	},
	{
		".spiffeTrustDomains[].bundleSource", "endpoint" + onlyIf + "'bundle_endpoint'",
		withSource(`type: bundle_endpoint, endpoint: {url: "https://b", profile: https_web}`), withSource(`type: bundle_endpoint`),
	},
	{
		".spiffeTrustDomains[].bundleSource", "file" + onlyIf + "'file'",
		withSource(`type: file, file: {configMapName: c, configMapKey: k}`), withSource(`type: file`),
	},
	{".spiffeTrustDomains[].bundleSource", "workloadAPI" + onlyIf + "'workload_api'", withSource(`type: workload_api, workloadAPI: {}`), withSource(`type: workload_api`)},
	{
		".spiffeTrustDomains[].bundleSource.file.configMapKey", "self != '.' && !self.startsWith('..')",
		withSource(`type: file, file: {configMapName: c, configMapKey: .k}`), withSource(`type: file, file: {configMapName: c, configMapKey: ..k}`),
	},
	{".storage.redis", "exactly one of addr or sentinelConfig must be set", withRedis(`addr: "r:1"`), withRedis(`addr: "r:1", sentinelConfig: {masterName: m}`)},
	{".storage.redis", "clusterMode requires addr to be set", withRedis(`addr: "r:1", clusterMode: true`), withRedis(`sentinelConfig: {masterName: m}, clusterMode: true`)},
	{
		".trustedIssuers[]", wildcardAlone, withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: ["*"]`),
		withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: ["*", c]`),
	},
	{
		".trustedIssuers[]", mayActNamed, withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: [c], allowMayAct: true`),
		withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: ["*"], allowMayAct: true`),
	},
	{
		".trustedIssuers[]", readableClaim, withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: [c], actorClaim: azp`),
		withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: [c], actorClaim: sub`),
	},
	{
		".trustedIssuers[]", "allowPrivateIPs requires jwksUrl to be set explicitly", withTrustedIssuer(`allowPrivateIPs: true, jwksUrl: "https://i/k"`),
		withTrustedIssuer(`allowPrivateIPs: true`),
	},
	{
		".trustedIssuers[]", "expectedAudience is required when legacy RFC 8693 policy is configured",
		withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: [c]`), withTrustedIssuer(`allowedDelegateClients: [c]`),
	},
	{
		".trustedIssuers[]", "allowedDelegateClients is required when legacy RFC 8693 policy is configured",
		withTrustedIssuer(`expectedAudience: a, allowedDelegateClients: [c]`), withTrustedIssuer(`expectedAudience: a`),
	},
	{
		".trustedIssuers[].caBundleRef", caNamed, withTrustedIssuer(`caBundleRef: {configMapRef: {name: ca, key: k}}`),
		withTrustedIssuer(`caBundleRef: {configMapRef: {name: "", key: k}}`),
	},
	{
		".trustedIssuers[].jwtBearerGrant", positiveAge, withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 5m, ` + binding + `}`),
		withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 0s, ` + binding + `}`),
	},
	{
		".trustedIssuers[].jwtBearerGrant", subjectsOnce, withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 5m, ` + binding + `}`),
		withTrustedIssuer(`jwtBearerGrant: {maxAssertionAge: 5m, ` + twice(binding) + `}`),
	},
	{
		".upstreamProviders[]", "type must be 'oidc' or 'oauth2'; oidcConfig must be set when type is 'oidc' and oauth2Config must be set " +
			"when type is 'oauth2' (and the other must not be set)",
		upstream, strings.ReplaceAll(upstream, "type: oidc", "type: oauth2"),
	},
	{".upstreamProviders[].oauth2Config", oneClient, withOAuth2(`clientId: c`), withOAuth2(`clientId: ""`)},
	{
		".upstreamProviders[].oauth2Config", "exactly one of discoveryUrl or registrationEndpoint must be set when dcrConfig is set",
		withOAuth2(`dcrConfig: {discoveryUrl: "https://u/d"}`), withOAuth2(`dcrConfig: {}`),
	},
	{
		".upstreamProviders[].oauth2Config", noSecret, withOAuth2(`clientId: c, clientSecretRef: {name: s, key: k}`),
		withOAuth2(`dcrConfig: {discoveryUrl: "https://u/d"}, clientSecretRef: {name: s, key: k}`),
	},
	{
		".upstreamProviders[].oauth2Config.caBundleRef", caNamed, withOAuth2(`clientId: c, caBundleRef: {configMapRef: {name: ca, key: k}}`),
		withOAuth2(`clientId: c, caBundleRef: {}`),
	},
	{".upstreamProviders[].oauth2Config.dcrConfig", oneEndpoint, withOAuth2(`dcrConfig: {registrationEndpoint: "https://u/r"}`), withOAuth2(twoEndpoints)},
	{
		".upstreamProviders[].oauth2Config.dcrConfig.registrationProbeInterval", oneMinute,
		withOAuth2(`dcrConfig: {discoveryUrl: "https://u/d", registrationProbeInterval: 1m}`),
		withOAuth2(`dcrConfig: {discoveryUrl: "https://u/d", registrationProbeInterval: 59s}`),
	},
	{".upstreamProviders[].oidcConfig", oneClient, withOIDC(`dcrConfig: {}`), withOIDC(`clientId: c, dcrConfig: {}`)},
	{
		".upstreamProviders[].oidcConfig", noSecret, withOIDC(`clientId: c, clientSecretRef: {name: s, key: k}`),
		withOIDC(`dcrConfig: {}, clientSecretRef: {name: s, key: k}`),
	},
	{".upstreamProviders[].oidcConfig", oneEndpoint, withOIDC(`dcrConfig: {discoveryUrl: "https://u/d"}`), withOIDC(twoEndpoints)},
	{
		".upstreamProviders[].oidcConfig.caBundleRef", caNamed, withOIDC(`clientId: c, caBundleRef: {configMapRef: {name: ca, key: k}}`),
		withOIDC(`clientId: c, caBundleRef: {configMapRef: {key: k}}`),
	},
	{".upstreamProviders[].oidcConfig.dcrConfig", oneEndpoint, withOIDC(`dcrConfig: {registrationEndpoint: "https://u/r"}`), withOIDC(twoEndpoints)},
	{
		".upstreamProviders[].oidcConfig.dcrConfig.registrationProbeInterval", oneMinute, withOIDC(`dcrConfig: {registrationProbeInterval: 2m}`),
		withOIDC(`dcrConfig: {registrationProbeInterval: 1s}`),
	},
}

// twice has the binding of one subject a second time.
func twice(text string) string {
	const one = `{subject: s, allowedResources: ["https://a"]}`
	return strings.ReplaceAll(text, one, one+", "+one)
}
