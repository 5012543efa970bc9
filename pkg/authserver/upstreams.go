// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// defaultUpstreamName is what the proxyrunner calls a single upstream without a name.
const defaultUpstreamName = "default"

// Lengths, in bytes, that the schema allows.
const (
	maxDCRURL            = 2048
	maxSoftwareStatement = 16384
)

var (
	subjectClaim = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	rotationKey  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

// Parameters that the proxyrunner sets itself; it exits at a configuration that sets one.
var (
	authorizationParams = []string{
		"client_id", "code_challenge", "code_challenge_method", "nonce", "redirect_uri", "response_type", "scope", "state",
	}
	tokenParams = []string{
		"client_assertion", "client_assertion_type", "client_id", "client_secret", "code", "code_verifier", "grant_type",
		"redirect_uri", "refresh_token", "scope",
	}
)

func (c *checker) upstreams(spec *v1beta1.EmbeddedAuthServerConfig) {
	names := map[string]int{}
	for i := range spec.UpstreamProviders {
		u, field := &spec.UpstreamProviders[i], upstreamPath(i)
		if len(validation.IsDNS1123Label(u.Name)) > 0 {
			c.refuse(field+".name", "is %s. Use lower-case letters, digits and hyphens, at most 63.", quote(u.Name))
		}
		if len(spec.UpstreamProviders) > 1 && u.Name == defaultUpstreamName {
			c.refuse(field+".name", "is %s, which is reserved where there are several upstreams. Choose another one.", quote(u.Name))
		}
		if first, taken := names[u.Name]; taken {
			c.refuse(field+".name", "is that of upstreamProviders[%d], too. Rename one of them.", first)
		}
		names[u.Name] = i

		switch {
		case u.Type == v1beta1.UpstreamProviderTypeOIDC && u.OIDCConfig != nil && u.OAuth2Config == nil:
			c.oidc(field+".oidcConfig", u.OIDCConfig, spec.InsecureAllowHTTP)
		case u.Type == v1beta1.UpstreamProviderTypeOAuth2 && u.OAuth2Config != nil && u.OIDCConfig == nil:
			c.oauth2(field+".oauth2Config", u.OAuth2Config, spec.InsecureAllowHTTP || u.OAuth2Config.InsecureAllowHTTP)
		default:
			c.refuse(field, "does not have the one member that fits its type. Set oidcConfig for type oidc, oauth2Config for type oauth2.")
		}
	}
}

func (c *checker) oidc(field string, o *v1beta1.OIDCUpstreamConfig, insecure bool) {
	c.endpoint(field+".issuerUrl", o.IssuerURL, insecure)
	c.client(field, o.ClientID, o.ClientSecretRef, o.DCRConfig)
	if d := o.DCRConfig; d != nil {
		c.dcr(field+".dcrConfig", d)
	}
	c.explicitRedirect(field, o.RedirectURI, insecure)
	c.refuseWhere(len(o.Scopes) > 0 && !slices.Contains(o.Scopes, "openid"), field+".scopes", "lacks openid, without which there is no ID token. Add it.")
	c.params(field, o.AdditionalAuthorizationParams, o.AdditionalTokenParams)
	if o.SubjectClaim != "" && !subjectClaim.MatchString(o.SubjectClaim) {
		c.refuse(field+".subjectClaim", "is %s, which is not a claim at the top level of a token. Use letters, digits and underscores.",
			quote(o.SubjectClaim))
	}
	c.bundleRef(field+".caBundleRef", o.CABundleRef)
}

func (c *checker) oauth2(field string, o *v1beta1.OAuth2UpstreamConfig, insecure bool) {
	c.endpoint(field+".authorizationEndpoint", o.AuthorizationEndpoint, insecure)
	c.endpoint(field+".tokenEndpoint", o.TokenEndpoint, insecure)
	c.client(field, o.ClientID, o.ClientSecretRef, o.DCRConfig)
	if d := o.DCRConfig; d != nil {
		c.refuseWhere(d.DiscoveryURL == "" && d.RegistrationEndpoint == "", field+".dcrConfig", "does not say where to register. Set discoveryUrl or registrationEndpoint.")
		c.dcr(field+".dcrConfig", d)
	}
	c.authMethod(field+".tokenEndpointAuthMethod", o)
	c.explicitRedirect(field, o.RedirectURI, insecure)
	c.params(field, o.AdditionalAuthorizationParams, o.AdditionalTokenParams)
	if o.UserInfo != nil {
		c.userInfo(field+".userInfo", o.UserInfo)
	}
	if m := o.TokenResponseMapping; m != nil && m.AccessTokenPath == "" {
		c.refuse(field+".tokenResponseMapping.accessTokenPath", "is missing. Set it.")
	}
	if t := o.IdentityFromToken; t != nil && t.SubjectPath == "" {
		c.refuse(field+".identityFromToken.subjectPath", "is missing. Set it.")
	}
	c.bundleRef(field+".caBundleRef", o.CABundleRef)
}

// client checks that there is one way for the proxyrunner to be a client of the identity provider.
func (c *checker) client(field, id string, secret *v1beta1.SecretKeyRef, dcr *v1beta1.DCRUpstreamConfig) {
	switch {
	case id == "" && dcr == nil:
		c.refuse(field+".clientId", "is missing, and so is dcrConfig. Set one of them.")
	case id != "" && dcr != nil:
		c.refuse(field+".clientId", "and dcrConfig exclude each other. Remove one of them.")
	case secret != nil && dcr != nil:
		c.refuse(field+".clientSecretRef", "and dcrConfig exclude each other: registration yields the secret. Remove one of them.")
	}
	c.secretKey(field+".clientSecretRef", secret)
}

func (c *checker) dcr(field string, d *v1beta1.DCRUpstreamConfig) {
	c.refuseWhere(d.DiscoveryURL != "" && d.RegistrationEndpoint != "", field, "has discoveryUrl and registrationEndpoint. Remove one of them.")
	for _, e := range []struct{ name, text string }{{"discoveryUrl", d.DiscoveryURL}, {"registrationEndpoint", d.RegistrationEndpoint}} {
		if len(e.text) > maxDCRURL {
			c.refuse(field+"."+e.name, "is longer than %d bytes. Shorten it.", maxDCRURL)
		} else if e.text != "" {
			c.endpoint(field+"."+e.name, e.text, false)
		}
	}
	c.refuseWhere(len(d.SoftwareStatement) > maxSoftwareStatement, field+".softwareStatement", "is longer than %d bytes. Shorten it.", maxSoftwareStatement)
	if d.RotationKey != "" && !rotationKey.MatchString(d.RotationKey) {
		c.refuse(field+".rotationKey", "must be at most 64 letters, digits, dots, underscores and hyphens.")
	}
	if !slices.Contains([]string{"", "tokenEndpoint", "authorizationEndpoint", "none"}, d.RegistrationProbe) {
		c.refuse(field+".registrationProbe", "is %s. Choose tokenEndpoint, authorizationEndpoint or none.", quote(d.RegistrationProbe))
	}
	if text := d.RegistrationProbeInterval; text != "" {
		if interval, err := time.ParseDuration(text); err != nil || interval < time.Minute {
			c.refuse(field+".registrationProbeInterval", "must be a duration of at least 1m, such as 5m.")
		}
	}
	c.secretKey(field+".initialAccessTokenRef", d.InitialAccessTokenRef)
}

func (c *checker) authMethod(field string, o *v1beta1.OAuth2UpstreamConfig) {
	switch o.TokenEndpointAuthMethod {
	case "":
	case "none":
		c.refuseWhere(o.ClientSecretRef != nil, field, "is none, and there is a client secret. Remove clientSecretRef, or choose another method.")
	case "client_secret_basic", "client_secret_post":
		c.refuseWhere(o.ClientSecretRef == nil && o.DCRConfig == nil, field, "is %s, and there is no client secret. Set clientSecretRef.", o.TokenEndpointAuthMethod)
	default:
		c.refuse(field, "is %s. Choose none, client_secret_basic or client_secret_post.", quote(o.TokenEndpointAuthMethod))
	}
}

// explicitRedirect checks a redirect URI that is given; requirements checks the default one.
func (c *checker) explicitRedirect(field, text string, insecure bool) {
	if text != "" {
		c.refuseIf(field+".redirectUri", redirect(text, insecure))
	}
}

// userInfo checks an endpoint that the proxyrunner calls with the user's token: there is no way to allow plain http.
func (c *checker) userInfo(field string, u *v1beta1.UserInfoConfig) {
	endpoint, ok := httpURL(u.EndpointURL)
	switch {
	case !ok:
		c.refuse(field+".endpointUrl", "must be an http or https URL with a host.")
	case endpoint.Scheme == "http" && !loopback(endpoint.Hostname()):
		c.refuse(field+".endpointUrl", "is plain http on a host that is not loopback. Use https.")
	}
	if m := cmp.Or(u.HTTPMethod, "GET"); m != "GET" && m != "POST" {
		c.refuse(field+".httpMethod", "is %s. Choose GET or POST.", quote(u.HTTPMethod))
	}
}

// params checks additional parameters. Their values are never named.
func (c *checker) params(field string, authorization, token map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(authorization)) {
		c.refuseWhere(slices.Contains(authorizationParams, name), field+".additionalAuthorizationParams", "sets %s, which the proxyrunner sets itself. Remove it.", name)
	}
	for _, name := range slices.Sorted(maps.Keys(token)) {
		switch {
		case slices.Contains(tokenParams, name):
			c.refuse(field+".additionalTokenParams", "sets %s, which the proxyrunner sets itself. Remove it.", name)
		case name == "resource":
			if u, err := url.Parse(token[name]); err != nil || !u.IsAbs() || strings.Contains(token[name], "#") {
				c.refuse(fmt.Sprintf("%s.additionalTokenParams[%s]", field, name), "must be an absolute URI without a fragment.")
			}
		}
	}
}
