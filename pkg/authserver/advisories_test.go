// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

func TestAdvisoriesTellOfIdentityAndGrants(t *testing.T) {
	if got := Advisories(nil); got != nil {
		t.Errorf("got %v for no configuration", got)
	}
	for _, c := range []struct {
		name   string
		change func(*v1beta1.EmbeddedAuthServerConfig)
		// identity and grants are how the messages begin where the condition holds.
		identity, grants string
	}{
		{"neither", func(*v1beta1.EmbeddedAuthServerConfig) {}, "", ""},
		{"oauth2 with user information", oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) { o.UserInfo = &v1beta1.UserInfoConfig{} }), "", ""},
		{"oauth2 with a path", oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) { o.IdentityFromToken = &v1beta1.IdentityFromTokenConfig{} }), "", ""},
		{"oauth2 without", oauth2Spec(func(*v1beta1.OAuth2UpstreamConfig) {}), `These upstreams of type oauth2 do not say who the user is: "git".`, ""},
		{"canonical", canonicalSpec(func(*v1beta1.EmbeddedAuthServerConfig) {}), "", ""},
		{"legacy clients", delegateSpec(func(*v1beta1.DelegateClientConfig) {}), "", "Deprecated inbound grant fields are configured: " +
			"spec.embeddedAuthServer.delegateClients -> spec.embeddedAuthServer.inboundGrants.tokenExchange.delegateClients"},
		{"legacy assertions", assertionSpec(func(*v1beta1.JWTBearerGrantConfig) {}), "", "Deprecated inbound grant fields are configured: " +
			"spec.embeddedAuthServer.trustedIssuers[0].jwtBearerGrant -> spec.embeddedAuthServer.inboundGrants.jwtBearer.issuerPolicies"},
		{
			"legacy exchange, whether it is valid or not", trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.AllowMayAct, t.IssuerURL = true, "" }), "",
			"Deprecated inbound grant fields are configured: " +
				"spec.embeddedAuthServer.trustedIssuers[0].expectedAudience -> spec.embeddedAuthServer.inboundGrants.tokenExchange.issuerPolicies, " +
				"spec.embeddedAuthServer.trustedIssuers[0].allowedDelegateClients -> spec.embeddedAuthServer.inboundGrants.tokenExchange.issuerPolicies, " +
				"spec.embeddedAuthServer.trustedIssuers[0].allowMayAct -> spec.embeddedAuthServer.inboundGrants.tokenExchange.issuerPolicies",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := goodSpec()
			c.change(spec)
			got := Advisories(spec)
			if len(got) != 2 || got[0].Type != "IdentitySynthesized" || got[1].Type != "DeprecatedInboundGrantConfiguration" {
				t.Fatalf("got %v", got)
			}
			reasons := [2][2]string{
				{"AllUpstreamsHaveUserInfo", "OAuth2UpstreamWithoutUserInfo"}, {"CanonicalInboundGrantConfiguration", "LegacyInboundGrantFields"},
			}
			for i, want := range []string{c.identity, c.grants} {
				reason := reasons[i][0]
				if want != "" {
					reason = reasons[i][1]
				}
				if got[i].Holds != (want != "") || got[i].Reason != reason || got[i].Message == "" || !strings.HasPrefix(got[i].Message, want) {
					t.Errorf("got %+v, want the reason %s and the message %s…", got[i], reason, want)
				}
			}
		})
	}
}
