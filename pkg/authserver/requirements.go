// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"slices"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// requirements checks what the authorization server needs of the MCPServer, and of its own fields in the light of it.
func (c *checker) requirements(in *Input, g *grants) {
	c.serverRequirements(in)
	if in.ResourceURL == "" {
		return // already refused; all that follows compares with it
	}
	for i := range in.Spec.UpstreamProviders {
		given, field, insecure := upstreamRedirect(in.Spec, i)
		if given != "" {
			continue
		}
		if what := redirect(redirectURI("", in.ResourceURL), insecure); what != "" {
			c.refuse(field, "is missing, and its default, /oauth/callback below the MCPServer's resourceUrl, %s "+
				"Or set spec.oidcConfigRef.resourceUrl and audience to an https URL.", what)
		}
	}
	scopes := in.Scopes
	if len(scopes) == 0 {
		scopes = DefaultScopes
	}
	const (
		unsupported = "a scope that the MCPServer does not support. Remove it, or add it to spec.oidcConfigRef.scopes."
		elsewhere   = "which is not the MCPServer's resourceUrl, the only one for which there are tokens. Name that instead."
	)
	c.within(root+".baselineClientScopes", in.Spec.BaselineClientScopes, scopes, unsupported)
	for i := range g.clients {
		field := fmt.Sprintf("%s[%d]", g.clientsField, i)
		c.within(field+".scopes", g.clients[i].Scopes, scopes, unsupported)
		c.within(field+".audiences", g.clients[i].Audiences, []string{in.ResourceURL}, elsewhere)
	}
	for i := range g.issuers {
		j := g.issuers[i].assertions
		if j == nil {
			continue
		}
		for b := range j.SubjectBindings {
			c.within(fmt.Sprintf("%s.subjectBindings[%d].allowedResources", g.issuers[i].assertionsField, b),
				j.SubjectBindings[b].AllowedResources, []string{in.ResourceURL}, elsewhere)
		}
		if slices.Contains(j.AcceptedAudiences, in.ResourceURL) {
			c.refuse(g.issuers[i].assertionsField+".acceptedAudiences", "names the MCPServer's resourceUrl: a token for the MCPServer "+
				"would be good as an assertion. Name the authorization server there.")
		}
	}
}

// serverRequirements checks the MCPServer's own fields.
func (c *checker) serverRequirements(in *Input) {
	const ref = "spec.oidcConfigRef"
	switch {
	case !in.OIDC:
		c.refuse(ref, "is missing or not usable, and the proxy would accept every caller. "+
			"Refer to an MCPOIDCConfig with the issuer of the authorization server.")
	case in.ResourceURL == "":
		c.refuse(ref+".resourceUrl", "is missing. Set the URL under which clients reach the MCPServer.")
	case in.Audience != in.ResourceURL:
		c.refuse(ref+".audience", "must be the same as resourceUrl, for which the authorization server issues tokens. Set both to one URL.")
	default:
		c.refuseIf(ref+".resourceUrl", resource(in.ResourceURL))
	}
	if in.TokenExchange && (in.Spec.DisableUpstreamTokenInjection || len(in.Spec.UpstreamProviders) == 0) {
		why := "disableUpstreamTokenInjection is set"
		if !in.Spec.DisableUpstreamTokenInjection {
			why = "it has no upstream provider"
		}
		c.refuse("spec.externalAuthConfigRef", "is of type tokenExchange, and the authorization server removes the tokens of requests, as %s. "+
			"Remove the reference, or let upstream tokens pass.", why)
	}
	if in.Spec.TLSListener != nil && in.ProxyPort == TLSListenerPort {
		c.refuse("spec.proxyPort", "is %d, which is the port of %s.tlsListener. Choose another one.", TLSListenerPort, root)
	}
}

// within checks that every value is one of those that are allowed; otherwise what says why not, and what to do.
func (c *checker) within(field string, values, allowed []string, what string) {
	for _, value := range values {
		if !slices.Contains(allowed, value) {
			c.refuse(field, "names %s, %s", quote(value), what)
		}
	}
}

// upstreamRedirect returns the redirect URI that an upstream is given, its path, and whether it may be plain http.
func upstreamRedirect(spec *v1beta1.EmbeddedAuthServerConfig, i int) (given, field string, insecure bool) {
	switch u := &spec.UpstreamProviders[i]; {
	case u.OIDCConfig != nil:
		return u.OIDCConfig.RedirectURI, upstreamPath(i) + ".oidcConfig.redirectUri", spec.InsecureAllowHTTP
	case u.OAuth2Config != nil:
		insecure = spec.InsecureAllowHTTP || u.OAuth2Config.InsecureAllowHTTP
		return u.OAuth2Config.RedirectURI, upstreamPath(i) + ".oauth2Config.redirectUri", insecure
	}
	return "", upstreamPath(i), spec.InsecureAllowHTTP
}
