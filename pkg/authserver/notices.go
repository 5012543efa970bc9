// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// notices returns notices about fields that work otherwise than they say, for an input without problems.
func notices(in *Input, g *grants) []Problem {
	list := append(loginNotices(in), grantNotices(in.Spec, g)...)
	if s := in.Spec.Storage; s != nil && s.Redis != nil && !usesRedis(s) {
		list = append(list, Problem{v1beta1.ReasonFieldsIgnored, root + ".storage.redis has no effect, as the storage is of type memory. " +
			"Set the type to redis, or remove it."})
	}
	if what := unshared(in.Spec); what != "" && in.Replicas != nil && *in.Replicas > 1 {
		list = append(list, Problem{
			v1beta1.ReasonSessionStorageMissingForReplicas, fmt.Sprintf("The proxy has %d replicas, and %s", *in.Replicas, what),
		})
	}
	return append(list, fieldNotices(in.Spec)...)
}

// fieldNotices returns notices about fields without an effect.
func fieldNotices(spec *v1beta1.EmbeddedAuthServerConfig) []Problem {
	var list []Problem
	note := func(field, why string) {
		list = append(list, Problem{v1beta1.ReasonFieldsIgnored, fmt.Sprintf("%s has no effect, as %s. Remove it.", field, why)})
	}
	if spec.PrimaryUpstreamProvider != "" {
		note(root+".primaryUpstreamProvider", "an MCPServer has one upstream provider only")
	}
	if usesRedis(spec.Storage) && spec.Storage.Redis != nil {
		redis := spec.Storage.Redis
		for _, connection := range []struct {
			field string
			tls   *v1beta1.RedisTLSConfig
		}{{".storage.redis.tls", redis.TLS}, {".storage.redis.sentinelTls", redis.SentinelTLS}} {
			if tls := connection.tls; tls != nil && tls.InsecureSkipVerify && tls.CACertSecretRef != nil {
				note(root+connection.field+".caCertSecretRef", "insecureSkipVerify beside it turns the check of certificates off")
			}
		}
	}
	return list
}

func loginNotices(in *Input) []Problem {
	var list []Problem
	// The proxyrunner compares them as texts, but for blanks around them.
	if wanted, own := strings.TrimSpace(in.Issuer), strings.TrimSpace(in.Spec.Issuer); wanted != "" && wanted != own {
		list = append(list, Problem{v1beta1.ReasonInvalidConfig, fmt.Sprintf("%s.issuer is %s, and that of spec.oidcConfigRef is %s: the proxy "+
			"refuses every token that its authorization server issues. Set both to the same text; a slash at the end counts.",
			root, quote(own), quote(wanted))})
	}
	for i := range in.Spec.UpstreamProviders {
		given, field, _ := upstreamRedirect(in.Spec, i)
		if what := mismatch(in.Spec, redirectURI(given, in.ResourceURL)); what != "" {
			list = append(list, Problem{v1beta1.ReasonInvalidConfig, fmt.Sprintf("%s %s: every login in a browser fails, as its cookie does "+
				"not reach the callback. Set redirectUri, or authorizationEndpointBaseUrl, so that they agree.", field, what)})
		}
		if o := in.Spec.UpstreamProviders[i].OIDCConfig; o != nil && o.UserInfoOverride != nil {
			list = append(list, Problem{v1beta1.ReasonFieldsIgnored, upstreamPath(i) + ".oidcConfig.userInfoOverride has no effect: " +
				"the proxyrunner takes the identity from the ID token. Remove it."})
		}
	}
	return list
}

// mismatch says how a redirect URI does not agree with the URL at which a login begins; empty for not at all. Both are URLs that
// were checked before.
func mismatch(spec *v1beta1.EmbeddedAuthServerConfig, uri string) string {
	begin, _ := httpURL(cmp.Or(spec.AuthorizationEndpointBaseURL, spec.Issuer))
	back, _ := httpURL(uri)
	switch {
	case !strings.EqualFold(begin.Hostname(), back.Hostname()):
		return fmt.Sprintf("is on the host %s, and logins begin on %s", quote(back.Hostname()), quote(begin.Hostname()))
	case begin.Scheme == "https" && back.Scheme == "http" && !loopback(back.Hostname()):
		return "is plain http, and logins begin on https"
	}
	return ""
}

func grantNotices(spec *v1beta1.EmbeddedAuthServerConfig, g *grants) []Problem {
	var list []Problem
	note := func(field, what string) {
		list = append(list, Problem{v1beta1.ReasonFieldsIgnored, field + " " + what})
	}
	for i := range g.issuers {
		if p := &g.issuers[i].exchange; p.ExpectedAudience != "" && len(p.AllowedActors) == 0 && p.ActorMatcher == "" && !p.AllowMayAct {
			note(g.issuers[i].exchangeField, "accepts no token for token exchange, as it names no actor. "+
				"Set allowedActors, actorMatcher or allowMayAct.")
		} else if neverMatches(p.ActorMatcher) {
			note(g.issuers[i].exchangeField+".actorMatcher", "matches no token: its result is not a bool. Write an expression that is true or false.")
		}
	}
	switch inbound := spec.InboundGrants; {
	case inbound == nil:
	case inbound.JWTBearer != nil && len(inbound.JWTBearer.IssuerPolicies) == 0:
		note(root+".inboundGrants.jwtBearer", "has no issuer policy, and so grants nothing. Add one, or remove it.")
	case inbound.JWTBearer == nil && !g.tokenExchange:
		note(root+".inboundGrants", "names no grant, and so turns token exchange off. Remove it, or name the grants that you want.")
	}
	return list
}

// unshared says what several replicas would not share, and what to do about it, as the end of a sentence; empty for nothing.
func unshared(spec *v1beta1.EmbeddedAuthServerConfig) string {
	var lost, fields []string
	for _, state := range []struct {
		shared      bool
		what, field string
	}{
		{usesRedis(spec.Storage), "clients and sessions", root + ".storage to Redis"},
		{len(spec.SigningKeySecretRefs) > 0, "a signing key", root + ".signingKeySecretRefs"},
		{len(spec.HMACSecretRefs) > 0, "an HMAC secret", root + ".hmacSecretRefs"},
	} {
		if !state.shared {
			lost, fields = append(lost, state.what), append(fields, state.field)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return fmt.Sprintf("each has %s of its own: a login or a token of one is not valid at the others, and none outlives its pod. Set %s.",
		strings.Join(lost, " and "), strings.Join(fields, ", "))
}
