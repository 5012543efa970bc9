// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// anyClient is the entry that stands for all clients or subjects, where it is allowed.
const anyClient = "*"

// unreadableClaims are claims that the proxyrunner does not hand to actorClaim.
var unreadableClaims = []string{
	"sub", "iss", "aud", "exp", "iat", "nbf", "jti", "name", "email", "scope", "scp", "may_act",
}

// grants are the grants that a configuration allows besides an interactive login, in the legacy or in the canonical form.
type grants struct {
	// tokenExchange reports whether the runner offers RFC 8693.
	tokenExchange bool
	clients       []v1beta1.DelegateClientConfig
	// clientsField is the path of clients.
	clientsField string
	issuers      []issuer
}

// issuer is a trusted issuer with its policies.
type issuer struct {
	*v1beta1.TrustedIssuerConfig
	field string
	// exchange is the policy for token exchange, and exchangeField its path.
	exchange      v1beta1.TokenExchangeIssuerPolicyConfig
	exchangeField string
	// assertions is the policy for JWT-bearer assertions, nil for none, and assertionsField its path.
	assertions      *v1beta1.JWTBearerGrantConfig
	assertionsField string
}

// delegates returns the delegate clients that count, and their path.
func delegates(spec *v1beta1.EmbeddedAuthServerConfig) ([]v1beta1.DelegateClientConfig, string) {
	if g := spec.InboundGrants; g != nil && g.TokenExchange != nil {
		return g.TokenExchange.DelegateClients, root + ".inboundGrants.tokenExchange.delegateClients"
	}
	return spec.DelegateClients, root + ".delegateClients"
}

// legacyExchange returns the policy for token exchange that a trusted issuer holds itself.
func legacyExchange(t *v1beta1.TrustedIssuerConfig) v1beta1.TokenExchangeIssuerPolicyConfig {
	return v1beta1.TokenExchangeIssuerPolicyConfig{
		ExpectedAudience: t.ExpectedAudience, ActorClaim: t.ActorClaim, AllowedActors: t.AllowedActors, ActorMatcher: t.ActorMatcher,
		AllowedDelegateClients: t.AllowedDelegateClients, AllowMayAct: t.AllowMayAct,
	}
}

// setsExchange reports whether a policy for token exchange says anything.
func setsExchange(p *v1beta1.TokenExchangeIssuerPolicyConfig) bool {
	return p.ExpectedAudience != "" || len(p.AllowedDelegateClients) > 0 || signalsActor(p)
}

// signalsActor reports whether a policy says which actors may act for the subject.
func signalsActor(p *v1beta1.TokenExchangeIssuerPolicyConfig) bool {
	return p.ActorClaim != "" || p.ActorMatcher != "" || p.AllowMayAct || len(p.AllowedActors) > 0
}

// grants folds both forms into one, checks it, and returns it.
func (c *checker) grants(spec *v1beta1.EmbeddedAuthServerConfig) grants {
	g := grants{tokenExchange: spec.InboundGrants == nil}
	g.clients, g.clientsField = delegates(spec)
	byName := c.trustedIssuers(spec, &g)
	if spec.InboundGrants != nil {
		c.inboundGrants(spec, &g, byName)
	}
	c.delegateClients(&g)
	for i := range g.issuers {
		c.policies(&g.issuers[i])
	}
	return g
}

// trustedIssuers fills in the issuers with their legacy policies and returns their positions by name.
func (c *checker) trustedIssuers(spec *v1beta1.EmbeddedAuthServerConfig, g *grants) map[string]int {
	byName, byURL := map[string]int{}, map[string]int{}
	for i := range spec.TrustedIssuers {
		t, field := &spec.TrustedIssuers[i], issuerPath(i)
		g.issuers = append(g.issuers, issuer{
			TrustedIssuerConfig: t, field: field, exchange: legacyExchange(t), exchangeField: field,
			assertions: t.JWTBearerGrant, assertionsField: field + ".jwtBearerGrant",
		})
		c.trustedIssuerURLs(field, t)
		c.refuseWhere(t.IssuerURL == spec.Issuer, field+".issuerUrl", "is the authorization server itself, whose own tokens it accepts anyway. Remove the entry.")
		if first, taken := byURL[t.IssuerURL]; taken {
			c.refuse(field+".issuerUrl", "is that of trustedIssuers[%d], too. Remove one of them.", first)
		}
		byURL[t.IssuerURL] = i
		if t.Name != "" {
			if first, taken := byName[t.Name]; taken {
				c.refuse(field+".name", "is that of trustedIssuers[%d], too. Rename one of them.", first)
			}
			byName[t.Name] = i
		}
		c.bundleRef(field+".caBundleRef", t.CABundleRef)
	}
	return byName
}

func (c *checker) trustedIssuerURLs(field string, t *v1beta1.TrustedIssuerConfig) {
	u, ok := httpURL(t.IssuerURL)
	switch {
	case !ok:
		c.refuse(field+".issuerUrl", "must be an http or https URL with a host.")
	case u.User != nil:
		c.refuse(field+".issuerUrl", "holds credentials. Remove them.")
	case u.RawQuery != "" || u.Fragment != "":
		c.refuse(field+".issuerUrl", "has a query or a fragment. Remove it.")
	case u.Scheme == "http" && !t.InsecureAllowHTTP:
		c.refuse(field+".issuerUrl", "is plain http. Use https, or set insecureAllowHTTP of this issuer on a network that you trust.")
	}
	if t.JWKSURL == "" {
		c.refuseWhere(t.AllowPrivateIPs, field+".allowPrivateIPs", "needs jwksUrl. Set it, or turn allowPrivateIPs off.")
		return
	}
	u, ok = httpURL(t.JWKSURL)
	switch {
	case !ok:
		c.refuse(field+".jwksUrl", "must be an http or https URL with a host.")
	case u.User != nil:
		c.refuse(field+".jwksUrl", "holds credentials. Remove them.")
	case u.Fragment != "":
		c.refuse(field+".jwksUrl", "has a fragment. Remove it.")
	case u.Scheme == "http" && !t.InsecureAllowHTTP:
		c.refuse(field+".jwksUrl", "is plain http. Use https, or set insecureAllowHTTP of this issuer on a network that you trust.")
	case !t.AllowPrivateIPs && private(u.Hostname()):
		c.refuse(field+".jwksUrl", "is a private or reserved address. Use a public one, or set allowPrivateIPs of this issuer.")
	}
}

// inboundGrants replaces the legacy policies of each family that the canonical block names.
func (c *checker) inboundGrants(spec *v1beta1.EmbeddedAuthServerConfig, g *grants, byName map[string]int) {
	legacyExchanges, legacyAssertions := len(spec.DelegateClients) > 0, false
	for i := range g.issuers {
		legacyExchanges = legacyExchanges || setsExchange(&g.issuers[i].exchange)
		legacyAssertions = legacyAssertions || g.issuers[i].assertions != nil
	}
	g.tokenExchange = legacyExchanges
	if x := spec.InboundGrants.TokenExchange; x != nil {
		field := root + ".inboundGrants.tokenExchange"
		g.tokenExchange = true
		c.refuseWhere(legacyExchanges, field, "excludes delegateClients and the policy for token exchange in trustedIssuers. Move those into it.")
		refs := make([]string, 0, len(x.IssuerPolicies))
		for _, p := range x.IssuerPolicies {
			refs = append(refs, p.IssuerRef)
		}
		c.eachPolicy(field, refs, byName, func(policy, issuer int, policyField string) {
			g.issuers[issuer].exchange, g.issuers[issuer].exchangeField = x.IssuerPolicies[policy], policyField
		})
	}
	if j := spec.InboundGrants.JWTBearer; j != nil {
		field := root + ".inboundGrants.jwtBearer"
		c.refuseWhere(legacyAssertions, field, "excludes jwtBearerGrant in trustedIssuers. Move that into it.")
		refs := make([]string, 0, len(j.IssuerPolicies))
		for i := range j.IssuerPolicies {
			refs = append(refs, j.IssuerPolicies[i].IssuerRef)
		}
		c.eachPolicy(field, refs, byName, func(policy, issuer int, policyField string) {
			g.issuers[issuer].assertions = &j.IssuerPolicies[policy].JWTBearerGrantConfig
			g.issuers[issuer].assertionsField = policyField
		})
	}
}

// eachPolicy calls set for each policy whose reference names an issuer, by their positions.
func (c *checker) eachPolicy(family string, refs []string, byName map[string]int, set func(policy, issuer int, field string)) {
	seen := map[string]int{}
	for i, ref := range refs {
		field := fmt.Sprintf("%s.issuerPolicies[%d]", family, i)
		position, known := byName[ref]
		if first, taken := seen[ref]; taken {
			c.refuse(field+".issuerRef", "is that of issuerPolicies[%d], too. Remove one of them.", first)
		} else if !known {
			c.refuse(field+".issuerRef", "is %s, but no trusted issuer has that name. Correct it, or rename the issuer.", quote(ref))
		} else {
			set(i, position, field)
		}
		seen[ref] = i
	}
}

func (c *checker) delegateClients(g *grants) {
	seen := map[string]int{}
	for i := range g.clients {
		d, field := &g.clients[i], fmt.Sprintf("%s[%d]", g.clientsField, i)
		if first, taken := seen[d.ClientID]; taken {
			c.refuse(field+".clientId", "is that of delegateClients[%d], too. Rename one of them.", first)
		}
		seen[d.ClientID] = i
		switch u, ok := httpURL(d.ClientID); {
		case d.ClientID == "":
			c.refuse(field+".clientId", "is missing. Set it.")
		case strings.HasPrefix(d.ClientID, "https://") || ok && u.Scheme == "http" && loopback(u.Hostname()):
			c.refuse(field+".clientId", "is a URL, which stands for a client's metadata document. Choose a plain name.")
		}
		c.secretKey(field+".clientSecretRef", &d.ClientSecretRef)
		c.refuseWhere(len(d.Scopes) == 0, field+".scopes", "is empty. Name at least one scope.")
		c.refuseWhere(len(d.Audiences) == 0, field+".audiences", "is empty. Name the MCPServer's resourceUrl.")
	}
}

// policies checks the policies that say what an issuer's tokens may be used for.
func (c *checker) policies(t *issuer) {
	p, field := &t.exchange, t.exchangeField
	if p.ExpectedAudience == "" && t.assertions == nil {
		c.refuse(field+".expectedAudience", "is missing, and there is no JWT-bearer policy for this issuer. Set one of them.")
	} else if p.ExpectedAudience == "" && signalsActor(p) {
		c.refuse(field+".expectedAudience", "is missing, and a policy for token exchange is not. Set it.")
	}
	if p.ActorClaim != "" && slices.Contains(unreadableClaims, p.ActorClaim) {
		c.refuse(field+".actorClaim", "is %s, which cannot name an actor. Use client_id, or a claim such as azp, appid or cid.", p.ActorClaim)
	}
	if p.ActorMatcher != "" {
		_, wrong := compileMatcher(p.ActorMatcher)
		c.refuseIf(field+".actorMatcher", wrong)
	}
	if p.ExpectedAudience != "" {
		switch {
		case len(p.AllowedDelegateClients) == 0:
			c.refuse(field+".allowedDelegateClients", "is empty. Name clients, or * for all that may exchange tokens.")
		case slices.Contains(p.AllowedDelegateClients, ""):
			c.refuse(field+".allowedDelegateClients", "has an empty entry. Remove it.")
		case slices.Contains(p.AllowedDelegateClients, anyClient) && len(p.AllowedDelegateClients) > 1:
			c.refuse(field+".allowedDelegateClients", "names * and clients. Remove one or the other.")
		}
	}
	if p.AllowMayAct && slices.Contains(p.AllowedDelegateClients, anyClient) {
		c.refuse(field+".allowMayAct", "excludes * in allowedDelegateClients. Name the clients, or turn it off.")
	}
	if t.assertions != nil {
		c.assertions(t.assertionsField, t.assertions)
	}
}

func (c *checker) assertions(field string, j *v1beta1.JWTBearerGrantConfig) {
	if age, err := time.ParseDuration(j.MaxAssertionAge); err != nil || age <= 0 {
		c.refuse(field+".maxAssertionAge", "must be a positive duration, such as 5m.")
	}
	c.refuseWhere(len(j.SubjectBindings) == 0, field+".subjectBindings", "is empty. Bind at least one subject.")
	seen := map[string]int{}
	for i := range j.SubjectBindings {
		b, field := &j.SubjectBindings[i], fmt.Sprintf("%s.subjectBindings[%d]", field, i)
		c.refuseWhere(b.Subject == "" || b.Subject == anyClient, field+".subject", "must name one subject.")
		if first, taken := seen[b.Subject]; taken {
			c.refuse(field+".subject", "is that of subjectBindings[%d], too. Merge them.", first)
		}
		seen[b.Subject] = i
		c.refuseWhere(len(b.AllowedResources) == 0, field+".allowedResources", "is empty. Name the MCPServer's resourceUrl.")
		for r, text := range b.AllowedResources {
			c.refuseIf(fmt.Sprintf("%s.allowedResources[%d]", field, r), resource(text))
		}
	}
	for a, text := range j.AcceptedAudiences {
		c.refuseIf(fmt.Sprintf("%s.acceptedAudiences[%d]", field, a), resource(text))
	}
}
