// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// The legacy lists and the canonical block are written as they were given, never one as the other: the runner of each release
// reads its own.

func delegateClients(list []v1beta1.DelegateClientConfig) []DelegateClient {
	var clients []DelegateClient
	for i := range list {
		clients = append(clients, DelegateClient{
			ClientID: list[i].ClientID, ClientSecretEnvVar: delegateSecretEnv(i), Scopes: list[i].Scopes, Audiences: list[i].Audiences,
		})
	}
	return clients
}

func trustedIssuers(list []v1beta1.TrustedIssuerConfig) []TrustedIssuer {
	var issuers []TrustedIssuer
	for i := range list {
		t := &list[i]
		issuer := TrustedIssuer{
			Name:                   t.Name,
			IssuerURL:              t.IssuerURL,
			ExpectedAudience:       t.ExpectedAudience,
			JWKSURL:                t.JWKSURL,
			InsecureAllowHTTP:      t.InsecureAllowHTTP,
			AllowPrivateIPs:        t.AllowPrivateIPs,
			CAFilePath:             caFile(t.CABundleRef, pathIssuerCA, i),
			ActorClaim:             t.ActorClaim,
			AllowedActors:          t.AllowedActors,
			ActorMatcher:           t.ActorMatcher,
			AllowedDelegateClients: t.AllowedDelegateClients,
			AllowMayAct:            t.AllowMayAct,
		}
		if t.JWTBearerGrant != nil {
			issuer.JWTBearerGrant = new(jwtBearer(t.JWTBearerGrant))
		}
		issuers = append(issuers, issuer)
	}
	return issuers
}

func jwtBearer(c *v1beta1.JWTBearerGrantConfig) JWTBearer {
	policy := JWTBearer{MaxAssertionAge: goDuration(c.MaxAssertionAge), AcceptedAudiences: c.AcceptedAudiences}
	for _, b := range c.SubjectBindings {
		policy.SubjectBindings = append(policy.SubjectBindings, SubjectBinding{Subject: b.Subject, AllowedResources: b.AllowedResources})
	}
	return policy
}

func inboundGrants(c *v1beta1.InboundGrantsConfig) *InboundGrants {
	if c == nil {
		return nil
	}
	grants := &InboundGrants{}
	if x := c.TokenExchange; x != nil {
		grants.TokenExchange = &TokenExchangeGrant{DelegateClients: delegateClients(x.DelegateClients)}
		for _, p := range x.IssuerPolicies {
			grants.TokenExchange.IssuerPolicies = append(grants.TokenExchange.IssuerPolicies, TokenExchangePolicy{
				IssuerRef:              p.IssuerRef,
				ExpectedAudience:       p.ExpectedAudience,
				ActorClaim:             p.ActorClaim,
				AllowedActors:          p.AllowedActors,
				ActorMatcher:           p.ActorMatcher,
				AllowedDelegateClients: p.AllowedDelegateClients,
				AllowMayAct:            p.AllowMayAct,
			})
		}
	}
	if j := c.JWTBearer; j != nil {
		grants.JWTBearer = &JWTBearerGrant{}
		for i := range j.IssuerPolicies {
			p := &j.IssuerPolicies[i]
			grants.JWTBearer.IssuerPolicies = append(grants.JWTBearer.IssuerPolicies,
				JWTBearerPolicy{IssuerRef: p.IssuerRef, JWTBearer: jwtBearer(&p.JWTBearerGrantConfig)})
		}
	}
	return grants
}
