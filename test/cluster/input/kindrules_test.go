// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

// kindRule is a CEL rule of a definition, with a spec that it accepts and one that it refuses. The two differ in what the rule is
// about. Both are YAML: specs, or parts of spec.embeddedAuthServer where the rule is below it.
type kindRule struct {
	// field is where the rule is; [] stands for any item of a list.
	field, message     string
	accepted, rejected string
}

const (
	onlyIf  = " configuration must be set if and only if type is "
	caNamed = "configMapRef.name is required and must be non-empty"
)

// kindRules are the rules of the kinds that an MCPServer refers to, by resource.
var kindRules = map[string][]kindRule{
	"mcpoidcconfigs": {
		{
			"spec", "kubernetesServiceAccount must be set when type is 'kubernetesServiceAccount', and must not be set otherwise",
			`{type: kubernetesServiceAccount, kubernetesServiceAccount: {}}`, `{type: kubernetesServiceAccount}`,
		},
		{
			"spec", "inline must be set when type is 'inline', and must not be set otherwise",
			`{type: inline, inline: {issuer: "https://i"}}`, `{type: inline}`,
		},
		{
			"spec.inline.caBundleRef", caNamed,
			`{type: inline, inline: {issuer: "https://i", caBundleRef: {configMapRef: {name: ca, key: ca.crt}}}}`,
			`{type: inline, inline: {issuer: "https://i", caBundleRef: {configMapRef: {key: ca.crt}}}}`,
		},
	},
	"mcptelemetryconfigs": {
		{
			"spec.openTelemetry", "a header name cannot appear in both headers and sensitiveHeaders",
			`{openTelemetry: {headers: {a: b}, sensitiveHeaders: [{name: c, secretKeyRef: {name: s, key: k}}]}}`,
			`{openTelemetry: {headers: {a: b}, sensitiveHeaders: [{name: a, secretKeyRef: {name: s, key: k}}]}}`,
		},
		{
			"spec.openTelemetry.caBundleRef", caNamed,
			`{openTelemetry: {caBundleRef: {configMapRef: {name: ca, key: ""}}}}`, `{openTelemetry: {caBundleRef: {}}}`,
		},
	},
	"mcpwebhookconfigs": {{
		"spec", "at least one validating or mutating webhook must be defined",
		`{mutating: [{name: w, url: "https://w"}]}`, `{validating: [], mutating: []}`,
	}},
	"mcpexternalauthconfigs": {
		{
			"spec", "tokenExchange" + onlyIf + "'tokenExchange'",
			`{type: tokenExchange, tokenExchange: {tokenUrl: "https://t", audience: a}}`, `{type: tokenExchange}`,
		},
		{
			"spec", "headerInjection" + onlyIf + "'headerInjection'",
			`{type: headerInjection, headerInjection: {headerName: H, valueSecretRef: {name: s, key: k}}}`,
			`{type: unauthenticated, headerInjection: {headerName: H, valueSecretRef: {name: s, key: k}}}`,
		},
		{
			"spec", "bearerToken" + onlyIf + "'bearerToken'",
			`{type: bearerToken, bearerToken: {tokenSecretRef: {name: s, key: k}}}`, `{type: bearerToken}`,
		},
		{
			"spec", "embeddedAuthServer" + onlyIf + "'embeddedAuthServer'",
			`{type: embeddedAuthServer, embeddedAuthServer: {issuer: "https://auth", inboundGrants: {jwtBearer: {}}}}`,
			`{type: embeddedAuthServer}`,
		},
		{"spec", "awsSts" + onlyIf + "'awsSts'", `{type: awsSts, awsSts: {region: eu-west-1}}`, `{type: awsSts}`},
		{"spec", "upstreamInject" + onlyIf + "'upstreamInject'", `{type: upstreamInject, upstreamInject: {providerName: p}}`, `{type: upstreamInject}`},
		{"spec", "obo" + onlyIf + "'obo'", `{type: obo, obo: {}}`, `{type: obo}`},
		{
			"spec", "xaa" + onlyIf + "'xaa'",
			`{type: xaa, xaa: {idpTokenUrl: "https://i", targetTokenUrl: "https://t", targetAudience: a}}`, `{type: xaa}`,
		},
		{"spec", "no configuration must be set when type is 'unauthenticated'", `{type: unauthenticated}`, `{type: unauthenticated, obo: {}}`},
	},
}

const (
	client        = `{clientId: c, clientSecretRef: {name: s, key: k}, scopes: [openid], audiences: ["https://a"]}`
	upstream      = `upstreamProviders: [{name: u, type: oidc, oidcConfig: {issuerUrl: "https://u", clientId: c}}]`
	binding       = `subjectBindings: [{subject: s, allowedResources: ["https://a"]}]`
	trustedIssuer = `trustedIssuers: [{name: i, issuerUrl: "https://i"}]`
	issuerPolicy  = `{issuerRef: i, expectedAudience: a, allowedDelegateClients: [c]}`
	assert        = `{issuerRef: i, maxAssertionAge: 5m, ` + binding + `}`

	spiffeDomain = `{name: d, trustDomain: example.org, methods: [spiffe_jwt], bundleSource: {type: workload_api, workloadAPI: {}}}`
	spiffeClient = `{trustDomainRef: d, principalPattern: "spiffe://example.org/w", clientId: c, methods: [spiffe_jwt], audiences: [a], scopes: [s]}`
	spiffe       = upstream + `, spiffeTrustDomains: [` + spiffeDomain + `], inboundGrants: {spiffeClientAuth: [` + spiffeClient + `]}`
)

// withClients is an authorization server with a SPIFFE domain and these clients of it.
func withClients(clients string) string {
	return upstream + `, spiffeTrustDomains: [` + spiffeDomain + `], inboundGrants: {spiffeClientAuth: [` + clients + `]}`
}

// withDomains is an authorization server with these SPIFFE domains and a client of the first.
func withDomains(domains string) string {
	return upstream + `, spiffeTrustDomains: [` + domains + `], inboundGrants: {spiffeClientAuth: [` + spiffeClient + `]}`
}

func withSource(source string) string {
	return withDomains(`{name: d, trustDomain: example.org, methods: [spiffe_jwt], bundleSource: {` + source + `}}`)
}

func withTrustedIssuer(more string) string {
	return upstream + `, trustedIssuers: [{issuerUrl: "https://i", ` + more + `}]`
}

func withPolicy(more string) string {
	return trustedIssuer + `, inboundGrants: {tokenExchange: {issuerPolicies: [{issuerRef: i, expectedAudience: a, ` + more + `}]}}`
}

func withOIDC(more string) string {
	return `upstreamProviders: [{name: u, type: oidc, oidcConfig: {issuerUrl: "https://u", ` + more + `}}]`
}

func withOAuth2(more string) string {
	return `upstreamProviders: [{name: u, type: oauth2, oauth2Config: {authorizationEndpoint: "https://u", tokenEndpoint: "https://u", ` + more + `}}]`
}

func withRedis(more string) string {
	return upstream + `, storage: {type: redis, redis: {aclUserConfig: {passwordSecretRef: {name: s, key: k}}, ` + more + `}}`
}
