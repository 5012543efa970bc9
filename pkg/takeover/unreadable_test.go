// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// What Go parses ToolHive's operator can read.
func TestWhatGoDoesNotParseIsUnreadable(t *testing.T) {
	limits := func(change func(*v1beta1.RateLimitConfig, *v1beta1.RateLimitBucket)) func(*v1beta1.MCPServerSpec, string) {
		return func(spec *v1beta1.MCPServerSpec, duration string) {
			spec.RateLimiting = &v1beta1.RateLimitConfig{Tools: []v1beta1.ToolRateLimitConfig{{Name: "a"}, {Name: "b"}}}
			change(spec.RateLimiting, &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: duration})
		}
	}
	for path, set := range map[string]func(*v1beta1.MCPServerSpec, string){
		"spec.proxyReadTimeout":                  func(spec *v1beta1.MCPServerSpec, duration string) { spec.ProxyReadTimeout = duration },
		"spec.rateLimiting.shared.refillPeriod":  limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) { c.Shared = b }),
		"spec.rateLimiting.perUser.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) { c.PerUser = b }),
		"spec.rateLimiting.tools[1].shared.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) {
			c.Tools[1].Shared = b
		}),
		"spec.rateLimiting.tools[1].perUser.refillPeriod": limits(func(c *v1beta1.RateLimitConfig, b *v1beta1.RateLimitBucket) {
			c.Tools[1].PerUser = b
		}),
	} {
		for duration, unreadable := range map[string]bool{
			"0": false, "90s": false, "1.5h": false, "48h0m0s": false, "2d": true, "1 week": true, "1h 30m": true,
			// A bucket must have a period, and an empty one is none.
			"": path != "spec.proxyReadTimeout",
		} {
			server := &v1beta1.MCPServer{}
			set(&server.Spec, duration)
			want := [2]string{}
			if unreadable {
				want = [2]string{path, duration}
			}
			if field, value := takeover.Unreadable(server); want != [2]string{field, value} {
				t.Errorf("%s: %q: got %s %q", path, duration, field, value)
			}
		}
	}
}

// The same of what MCPServers refer to.
func TestAWebhookThatGoDoesNotParseIsUnreadable(t *testing.T) {
	for duration, unreadable := range map[string]bool{"10s": false, "1d": true, "10 seconds": true} {
		for _, kind := range []string{"mutating", "validating"} {
			config := &unstructured.Unstructured{Object: map[string]any{
				"kind": v1beta1.MCPWebhookConfigKind, "spec": map[string]any{kind: []any{map[string]any{}, map[string]any{"timeout": duration}}},
			}}
			want := [2]string{}
			if unreadable {
				want = [2]string{"spec." + kind + "[1].timeout", duration}
			}
			if field, value := takeover.UnreadableConfig(config); want != [2]string{field, value} {
				t.Errorf("%s: %q: got %s %q", kind, duration, field, value)
			}
		}
	}
}

// The schema of this one takes any text.
func TestASkewThatGoDoesNotParseIsUnreadable(t *testing.T) {
	for skew, unreadable := range map[any]bool{"30s": false, "-1m": false, nil: false, "1d": true, "abc": true, "": true} {
		obo := map[string]any{}
		if skew != nil {
			obo["cacheSkew"] = skew
		}
		config := &unstructured.Unstructured{Object: map[string]any{"kind": v1beta1.MCPExternalAuthConfigKind, "spec": map[string]any{"obo": obo}}}
		field, value := takeover.UnreadableConfig(config)
		if want := "spec.obo.cacheSkew"; (field == want && value == skew) != unreadable || !unreadable && field != "" {
			t.Errorf("%v: got %s %q", skew, field, value)
		}
	}
}
