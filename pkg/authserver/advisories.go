// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Advisory is a condition of the configuration's object that never makes it invalid.
type Advisory struct {
	Type string
	// Holds is the condition's status.
	Holds           bool
	Reason, Message string
}

// Advisories returns the conditions IdentitySynthesized and DeprecatedInboundGrantConfiguration, in this order; none for nil.
// They are the same whether the configuration is valid or not.
func Advisories(spec *v1beta1.EmbeddedAuthServerConfig) []Advisory {
	if spec == nil {
		return nil
	}
	return []Advisory{identitySynthesized(spec), deprecatedGrants(spec)}
}

func identitySynthesized(spec *v1beta1.EmbeddedAuthServerConfig) Advisory {
	var names []string
	for i := range spec.UpstreamProviders {
		u := &spec.UpstreamProviders[i]
		if o := u.OAuth2Config; u.Type == v1beta1.UpstreamProviderTypeOAuth2 && o != nil && o.UserInfo == nil && o.IdentityFromToken == nil {
			names = append(names, quote(u.Name))
		}
	}
	if len(names) == 0 {
		return Advisory{
			Type: v1beta1.ConditionIdentitySynthesized, Reason: v1beta1.ReasonAllUpstreamsHaveUserInfo,
			Message: "Every upstream says who the user is.",
		}
	}
	slices.Sort(names)
	return Advisory{
		Type: v1beta1.ConditionIdentitySynthesized, Holds: true, Reason: v1beta1.ReasonOAuth2UpstreamWithoutUserInfo,
		Message: fmt.Sprintf("These upstreams of type oauth2 do not say who the user is: %s. The proxyrunner makes a subject up from the "+
			"access token, without name and e-mail address. Set userInfo or identityFromToken where there is such a source.",
			strings.Join(names, ", ")),
	}
}

func deprecatedGrants(spec *v1beta1.EmbeddedAuthServerConfig) Advisory {
	const (
		clients    = root + ".inboundGrants.tokenExchange.delegateClients"
		exchanges  = root + ".inboundGrants.tokenExchange.issuerPolicies"
		assertions = root + ".inboundGrants.jwtBearer.issuerPolicies"
	)
	var moves []string
	move := func(set bool, from, to string) {
		if set {
			moves = append(moves, from+" -> "+to)
		}
	}
	move(len(spec.DelegateClients) > 0, root+".delegateClients", clients)
	for i := range spec.TrustedIssuers {
		t, field := &spec.TrustedIssuers[i], issuerPath(i)
		move(t.ExpectedAudience != "", field+".expectedAudience", exchanges)
		move(t.ActorClaim != "", field+".actorClaim", exchanges)
		move(len(t.AllowedActors) > 0, field+".allowedActors", exchanges)
		move(t.ActorMatcher != "", field+".actorMatcher", exchanges)
		move(len(t.AllowedDelegateClients) > 0, field+".allowedDelegateClients", exchanges)
		move(t.AllowMayAct, field+".allowMayAct", exchanges)
		move(t.JWTBearerGrant != nil, field+".jwtBearerGrant", assertions)
	}
	if len(moves) == 0 {
		return Advisory{
			Type: v1beta1.ConditionDeprecatedInboundGrantConfiguration, Reason: v1beta1.ReasonCanonicalInboundGrantConfiguration,
			Message: "No deprecated field is set.",
		}
	}
	return Advisory{
		Type: v1beta1.ConditionDeprecatedInboundGrantConfiguration, Holds: true, Reason: v1beta1.ReasonLegacyInboundGrantFields,
		Message: "Deprecated inbound grant fields are configured: " + strings.Join(moves, ", "),
	}
}
