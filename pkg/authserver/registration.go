// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// confidential checks that no client secret crosses a network in clear text.
func (c *checker) confidential(spec *v1beta1.EmbeddedAuthServerConfig, g *grants) {
	var field string
	switch {
	case len(g.clients) > 0:
		field = g.clientsField
	case spec.AllowConfidentialClientRegistration:
		field = root + ".allowConfidentialClientRegistration"
	default:
		return
	}
	u, ok := httpURL(spec.Issuer)
	const danger = "client secrets would cross the network in clear text"
	switch {
	case spec.InsecureAllowHTTP:
		c.refuse(field, "and insecureAllowHTTP exclude each other: %s. Use https, and turn insecureAllowHTTP off.", danger)
	case !ok || u.Scheme == "https":
	case !loopback(u.Hostname()):
		c.refuse(field, "needs an issuer with https: %s. Change the issuer.", danger)
	case !spec.InsecureAllowConfidentialOverLoopbackHTTP:
		c.refuse(field, "needs an issuer with https, or insecureAllowConfidentialOverLoopbackHTTP for one on this machine. Set one of them.")
	}
}

// registration checks which clients may register, and that there is a way to get a token.
func (c *checker) registration(spec *v1beta1.EmbeddedAuthServerConfig, g *grants) {
	uris := root + ".forceConfidentialRedirectUris"
	if len(spec.ForceConfidentialRedirectURIs) > 0 && !spec.AllowConfidentialClientRegistration {
		c.refuse(uris, "needs allowConfidentialClientRegistration. Set it, or remove the list.")
	}
	for i, text := range spec.ForceConfidentialRedirectURIs {
		field := fmt.Sprintf("%s[%d]", uris, i)
		if what := redirect(text, false); what != "" {
			c.refuse(field, "%s", what)
		} else if u, ok := httpURL(text); ok && (u.Scheme == "http" || loopback(u.Hostname())) {
			c.refuse(field, "is on loopback, and clients there cannot keep a secret. Remove it.")
		}
	}
	if spec.AllowPrivateKeyJWTRegistration && !g.tokenExchange {
		c.refuse(root+".allowPrivateKeyJWTRegistration", "needs token exchange, which inboundGrants turns off. "+
			"Add inboundGrants.tokenExchange, or turn it off.")
	}
	c.rateLimit(spec.RegistrationRateLimit)
	c.cimd(spec.CIMD)

	if len(spec.UpstreamProviders) > 0 || len(g.clients) > 0 || len(spec.SPIFFETrustDomains) > 0 {
		return
	}
	for i := range g.issuers {
		if g.issuers[i].assertions != nil {
			return
		}
	}
	c.refuse(root, "issues no token: it has no upstream provider, no delegate client and no JWT-bearer policy. Add one of them.")
}

func (c *checker) rateLimit(b *v1beta1.RateLimitBucket) {
	if b == nil {
		return
	}
	c.refuseWhere(b.MaxTokens < 1, root+".registrationRateLimit.maxTokens", "must be at least 1.")
	if period, err := time.ParseDuration(b.RefillPeriod); err != nil || period <= 0 {
		c.refuse(root+".registrationRateLimit.refillPeriod", "must be a positive duration, such as 1m30s.")
	}
}

// cimd checks the fields in force; the proxyrunner does not read the rest of a block that is turned off.
func (c *checker) cimd(d *v1beta1.EmbeddedAuthServerCIMDConfig) {
	if d == nil || !d.Enabled {
		return
	}
	c.refuseWhere(d.CacheMaxSize < 0, root+".cimd.cacheMaxSize", "is negative. Set a positive number, or leave it out.")
	if text := d.CacheFallbackTTL; text != "" {
		if ttl, err := time.ParseDuration(text); err != nil || ttl <= 0 {
			c.refuse(root+".cimd.cacheFallbackTtl", "must be a positive duration, such as 5m.")
		}
	}
}
