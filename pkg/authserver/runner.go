// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The first releases of ToolHive whose proxyrunner is known to read fields that were added after v0.44.0. Earlier ones
// silently ignore them, or exit.
var (
	sinceGrants    = version.MustParseSemantic("0.47.0")
	sinceUpstreams = version.MustParseSemantic("0.58.0")
)

// What an older proxyrunner does where a registration is not limited: it allows defaultRate clients a second, defaultBurst of
// them at once, and any number in all.
const (
	defaultRate  = 1.0
	defaultBurst = 5
)

// runnerField is a field that older proxyrunners ignore.
type runnerField struct {
	// path below spec.embeddedAuthServer.
	path  string
	since *version.Version
	// set reports whether a configuration uses the field.
	set func(*config) bool
	// harmless says that the rest works as written without the field: there is a notice then, and no refusal.
	harmless bool
}

// Short names for the table below.
type (
	config    = v1beta1.EmbeddedAuthServerConfig
	oidc      = v1beta1.OIDCUpstreamConfig
	oauth2    = v1beta1.OAuth2UpstreamConfig
	dcrConfig = v1beta1.DCRUpstreamConfig
	trusted   = v1beta1.TrustedIssuerConfig
)

// runnerFields are in the order of the messages. A field of the configuration that is not among them and not in v0.44.0 fails
// TestEveryFieldHasARunner.
var runnerFields = []runnerField{
	{path: "inboundGrants", since: sinceGrants, set: func(s *config) bool { return s.InboundGrants != nil }},
	{path: "upstreamProviders, which is empty,", since: sinceGrants, set: func(s *config) bool { return len(s.UpstreamProviders) == 0 }},
	{path: "upstreamProviders[].oidcConfig.dcrConfig", since: sinceUpstreams, set: upstreamHas(
		func(o *oidc) bool { return o.DCRConfig != nil }, nil)},
	{path: "upstreamProviders[].caBundleRef", since: sinceGrants, set: upstreamHas(
		func(o *oidc) bool { return o.CABundleRef != nil },
		func(o *oauth2) bool { return o.CABundleRef != nil })},
	{path: "upstreamProviders[].additionalTokenParams", since: sinceUpstreams, set: upstreamHas(
		func(o *oidc) bool { return len(o.AdditionalTokenParams) > 0 },
		func(o *oauth2) bool { return len(o.AdditionalTokenParams) > 0 })},
	{path: "upstreamProviders[].omitScopeOnRefresh", since: sinceUpstreams, set: upstreamHas(
		func(o *oidc) bool { return o.OmitScopeOnRefresh },
		func(o *oauth2) bool { return o.OmitScopeOnRefresh })},
	{path: "upstreamProviders[].oauth2Config.tokenEndpointAuthMethod", since: sinceUpstreams, set: upstreamHas(
		nil, func(o *oauth2) bool { return o.TokenEndpointAuthMethod != "" })},
	{path: "upstreamProviders[].dcrConfig.rotationKey", since: sinceUpstreams, harmless: true, set: dcrHas(
		func(d *dcrConfig) bool { return d.RotationKey != "" })},
	{path: "upstreamProviders[].dcrConfig.registrationProbe", since: sinceUpstreams, harmless: true, set: dcrHas(
		func(d *dcrConfig) bool { return d.RegistrationProbe != "" })},
	{path: "upstreamProviders[].dcrConfig.registrationProbeInterval", since: sinceUpstreams, harmless: true, set: dcrHas(
		func(d *dcrConfig) bool { return d.RegistrationProbeInterval != "" })},
	{path: "trustedIssuers[].caBundleRef", since: sinceGrants, set: issuerHas(func(t *trusted) bool { return t.CABundleRef != nil })},
	{path: "trustedIssuers[].actorMatcher", since: sinceGrants, set: issuerHas(func(t *trusted) bool { return t.ActorMatcher != "" })},
	{path: "trustedIssuers[].jwtBearerGrant", since: sinceGrants, set: issuerHas(func(t *trusted) bool { return t.JWTBearerGrant != nil })},
	{path: "tlsListener", since: sinceUpstreams, set: func(s *config) bool { return s.TLSListener != nil }},
	{path: "allowPrivateKeyJWTRegistration", since: sinceGrants, harmless: true, set: func(s *config) bool { return s.AllowPrivateKeyJWTRegistration }},
	{path: "registrationRateLimit", since: sinceUpstreams, set: limitsTighter},
	{path: "registrationRateLimit", since: sinceUpstreams, harmless: true, set: func(s *config) bool {
		return s.RegistrationRateLimit != nil && !limitsTighter(s)
	}},
	{path: "storage.maxDCRClients", since: sinceUpstreams, set: func(s *config) bool {
		return s.Storage != nil && s.Storage.MaxDCRClients != nil && *s.Storage.MaxDCRClients > 0
	}},
}

// checkRunner returns the settings with which an older proxyrunner must not be started, and notices of those that it ignores without
// harm. Of a proxyrunner whose version is not known, nil, each setting that one of the older ones ignores gets a notice: it is as
// likely a new one, and to refuse it would stop users who take their images from a mirror.
func checkRunner(spec *config, runner *version.Version) (refused, noticed []Problem) {
	for i := range runnerFields {
		f := &runnerFields[i]
		if runner != nil && !runner.LessThan(f.since) || !f.set(spec) {
			continue
		}
		switch {
		case runner == nil:
			noticed = append(noticed, Problem{v1beta1.ReasonRunnerVersionUnknown, fmt.Sprintf(
				"%s.%s may not be honoured: proxyrunners before v%s do not know it; make sure that yours is newer.", root, f.path, f.since)})
		case f.harmless:
			noticed = append(noticed, Problem{v1beta1.ReasonRunnerTooOld, fmt.Sprintf(
				"%s.%s has no effect: the proxyrunner is v%s, and those before v%s ignore it. Run the operator with a newer --runner-image.",
				root, f.path, runner, f.since)})
		default:
			refused = append(refused, Problem{v1beta1.ReasonRunnerTooOld, fmt.Sprintf(
				"%s.%s cannot be honoured: the proxyrunner is v%s, and those before v%s do not know it. "+
					"Run the operator with a newer --runner-image.", root, f.path, runner, f.since)})
		}
	}
	return refused, noticed
}

// limitsTighter reports whether registrations are limited more than an older proxyrunner limits them anyway.
func limitsTighter(spec *config) bool {
	b := spec.RegistrationRateLimit
	if b == nil {
		return false
	}
	period, err := time.ParseDuration(b.RefillPeriod)
	return err == nil && (b.MaxTokens < defaultBurst || float64(b.MaxTokens)/period.Seconds() < defaultRate)
}

// upstreamHas reports of a configuration whether one of its upstreams has something; nil is for never.
func upstreamHas(ofOIDC func(*oidc) bool, ofOAuth2 func(*oauth2) bool) func(*config) bool {
	return func(spec *config) bool {
		for i := range spec.UpstreamProviders {
			u := &spec.UpstreamProviders[i]
			if ofOIDC != nil && u.OIDCConfig != nil && ofOIDC(u.OIDCConfig) || ofOAuth2 != nil && u.OAuth2Config != nil && ofOAuth2(u.OAuth2Config) {
				return true
			}
		}
		return false
	}
}

func dcrHas(has func(*dcrConfig) bool) func(*config) bool {
	return upstreamHas(
		func(o *oidc) bool { return o.DCRConfig != nil && has(o.DCRConfig) },
		func(o *oauth2) bool { return o.DCRConfig != nil && has(o.DCRConfig) })
}

func issuerHas(has func(*trusted) bool) func(*config) bool {
	return func(spec *config) bool {
		for i := range spec.TrustedIssuers {
			if has(&spec.TrustedIssuers[i]) {
				return true
			}
		}
		return false
	}
}
