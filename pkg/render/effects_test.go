// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// noticesOf returns the messages of the notices of one condition.
func noticesOf(result *Result, condition string) string {
	var messages []string
	for _, notice := range result.Notices {
		if notice.Condition == condition {
			messages = append(messages, notice.Message)
		}
	}
	return strings.Join(messages, "\n")
}

// What a field does not do, or does otherwise than it says, is in a notice, and no notice is there without a cause.
func TestEachMissingEffectHasANotice(t *testing.T) {
	bucket := &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "1s"}
	secret := &v1beta1.SecretKeyRef{Name: "s", Key: "k"}
	limits := func(in *Input, limits v1beta1.RateLimitConfig) {
		in.Server.Spec.RateLimiting = &limits
		in.Server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", Address: "r:6379"}
	}
	without := func(in *Input) { in.Server.Spec.OIDCConfigRef = nil }
	otel := func(enabled bool, change func(*v1beta1.MCPTelemetryOTelConfig)) func(*Input) {
		return func(in *Input) {
			configs.TelemetryConfigRef.In(in.References.Objects).Spec.OpenTelemetry = &v1beta1.MCPTelemetryOTelConfig{Enabled: enabled}
			change(configs.TelemetryConfigRef.In(in.References.Objects).Spec.OpenTelemetry)
		}
	}
	traced := func(o *v1beta1.MCPTelemetryOTelConfig) {
		o.Endpoint, o.Tracing = "otel:4318", &v1beta1.OpenTelemetryTracingConfig{Enabled: true}
	}
	for name, c := range map[string]struct {
		change    func(*Input)
		condition string
		// want is a part of the condition's message, and not what it must not have.
		want, not string
	}{
		"exchanged tokens, checked": {func(*Input) {}, v1beta1.ConditionExternalAuthConfigValidated, "valid and ready", "Mind"},
		"exchanged tokens that nobody has checked": {
			without, v1beta1.ConditionExternalAuthConfigValidated,
			"Mind that without spec.oidcConfigRef the proxy passes requests without a token on, and exchanges tokens that nobody has checked", "",
		},
		"the provider of exchanged tokens": {
			func(in *Input) {
				configs.ExternalAuthConfigRef.In(in.References.Objects).Spec.TokenExchange.SubjectProviderName = "okta"
			},
			v1beta1.ConditionExternalAuthConfigValidated, "Mind that the proxy ignores subjectProviderName in it", "",
		},
		"one limit for all": {
			func(in *Input) { without(in); limits(in, v1beta1.RateLimitConfig{Shared: bucket}) }, v1beta1.ConditionRateLimitConfigValid, "", "share",
		},
		"a limit for each user": {
			func(in *Input) { limits(in, v1beta1.RateLimitConfig{PerUser: bucket}) }, v1beta1.ConditionRateLimitConfigValid, "", "share",
		},
		"a limit for each user, of whom there is one": {
			func(in *Input) {
				without(in)
				limits(in, v1beta1.RateLimitConfig{PerUser: bucket, Tools: []v1beta1.ToolRateLimitConfig{{Name: "t", PerUser: bucket}}})
			},
			v1beta1.ConditionRateLimitConfigValid,
			"rateLimiting is valid. Mind that without spec.oidcConfigRef the proxy takes all clients for one user, so they share the buckets of perUser", "",
		},
		"private addresses of protected resources": {
			func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.ProtectedResourceAllowPrivateIP = true
			}, v1beta1.ConditionOIDCConfigRefValidated,
			"Mind that protectedResourceAllowPrivateIP in it has no effect", "",
		},
		"introspection by plain http, without a client": {
			func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.IntrospectionURL, configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.InsecureAllowHTTP = "http://idp/introspect", true
			},
			v1beta1.ConditionOIDCConfigRefValidated, "valid and ready", "Mind",
		},
		"introspection by plain http, with a client": {
			func(in *Input) {
				inline := configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline
				inline.IntrospectionURL, inline.InsecureAllowHTTP, inline.ClientID = "http://idp/introspect", true, "c"
			},
			v1beta1.ConditionOIDCConfigRefValidated,
			"Mind that its introspectionUrl is plain http, which the proxyrunner refuses for a client in spite of insecureAllowHTTP", "",
		},
		"signals": {otel(true, traced), v1beta1.ConditionTelemetryConfigRefValidated, "valid and ready", "Mind"},
		"nothing of OpenTelemetry": {
			otel(false, func(*v1beta1.MCPTelemetryOTelConfig) {}), v1beta1.ConditionTelemetryConfigRefValidated, "valid and ready", "Mind",
		},
		"signals that are turned off": {
			otel(false, traced), v1beta1.ConditionTelemetryConfigRefValidated,
			"Mind that openTelemetry.enabled in it is false, so the proxy sends neither traces nor metrics", "",
		},
		"a webhook whose certificate nobody checks": {
			func(in *Input) {
				configs.WebhookConfigRef.In(in.References.Objects).Spec.Mutating[0].TLSConfig = &v1beta1.WebhookTLSConfig{InsecureSkipVerify: true, CASecretRef: secret}
			},
			v1beta1.ConditionWebhookConfigValidated, `Mind that caSecretRef of its webhook "m" has no effect, as insecureSkipVerify is set`, "",
		},
		"a webhook whose certificate is checked": {
			func(in *Input) {
				configs.WebhookConfigRef.In(in.References.Objects).Spec.Mutating[0].TLSConfig = &v1beta1.WebhookTLSConfig{CASecretRef: secret}
			},
			v1beta1.ConditionWebhookConfigValidated, "valid and ready", "Mind",
		},
		"a store in memory": {
			func(in *Input) { in.Server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "memory"} }, v1beta1.ConditionSpecValid, "", "effect",
		},
		"an address of a store in memory": {
			func(in *Input) {
				in.Server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "memory", Address: "r:6379", DB: 1, KeyPrefix: "p:", PasswordRef: secret}
			},
			v1beta1.ConditionSpecValid,
			"Some fields have no effect with provider memory: spec.sessionStorage.address, spec.sessionStorage.db, spec.sessionStorage.keyPrefix, spec.sessionStorage.passwordRef.", "",
		},
		"a policy for callers without a name": {without, v1beta1.ConditionAuthzConfigRefValidated, "see every caller as the same local user", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			c.change(&in)
			got := noticesOf(mustRender(t, in, Options{}), c.condition)
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%s: %q, want %q and not %q", c.condition, got, c.want, c.not)
			}
			if strings.Count(got, "Mind that") > 1 {
				t.Errorf("%s says something twice: %s", c.condition, got)
			}
		})
	}
}
