// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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

// TestEffects: what a field does not do, or does otherwise than it says, is in a notice, and no notice is there without a cause.
func TestEffects(t *testing.T) {
	bucket := &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "1s"}
	limits := func(in *Input, limits v1beta1.RateLimitConfig) {
		in.Server.Spec.RateLimiting = &limits
		in.Server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", Address: "r:6379"}
	}
	without := func(in *Input) { in.Server.Spec.OIDCConfigRef = nil }
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
		"introspection by plain http, without a client": {
			func(in *Input) {
				in.References.OIDC.Spec.Inline.IntrospectionURL, in.References.OIDC.Spec.Inline.InsecureAllowHTTP = "http://idp/introspect", true
			},
			v1beta1.ConditionOIDCConfigRefValidated, "valid and ready", "Mind",
		},
		"introspection by plain http, with a client": {
			func(in *Input) {
				inline := in.References.OIDC.Spec.Inline
				inline.IntrospectionURL, inline.InsecureAllowHTTP, inline.ClientID = "http://idp/introspect", true, "c"
			},
			v1beta1.ConditionOIDCConfigRefValidated,
			"Mind that its introspectionUrl is plain http, which the proxyrunner refuses for a client in spite of insecureAllowHTTP", "",
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
