// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// A field of a reference that older proxyrunners ignore is noticed where the image does not show its version, and the proxy is rendered.
// With one that knows the field there is nothing to say.
func TestFieldsThatAnUnknownRunnerMayIgnoreAreNoticed(t *testing.T) {
	const mine, digest, current = "registry.example.com/runner:mine", "runner@sha256:0123456789abcdef", "runner:v0.62.0"
	off, on := false, true
	metricsPort := func(value *bool) func(*Input) {
		return func(in *Input) {
			configs.TelemetryConfigRef.In(in.References.Objects).Spec.Prometheus.MetricsOnTransportPort = value
		}
	}
	authServer := func(change func(*v1beta1.EmbeddedAuthServerConfig)) func(*Input) {
		return func(in *Input) {
			embedAuthServer(in)
			change(configs.ExternalAuthConfigRef.In(in.References.Objects).Spec.EmbeddedAuthServer)
		}
	}
	for name, c := range map[string]struct {
		image  string
		change func(*Input)
		// want are parts of the notice; none for no notice.
		want []string
	}{
		"metrics off the proxy's port, tag":    {mine, metricsPort(&off), []string{"prometheus.metricsOnTransportPort", "v0.47.0", mine}},
		"metrics off the proxy's port, digest": {digest, metricsPort(&off), []string{"prometheus.metricsOnTransportPort"}},
		"metrics off the proxy's port, newer":  {current, metricsPort(&off), nil},
		"metrics on the proxy's port":          {mine, metricsPort(&on), nil},
		"metrics where they are by default":    {mine, metricsPort(nil), nil},
		"a limit, tag": {mine, authServer(func(s *v1beta1.EmbeddedAuthServerConfig) {
			s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "1m"}
		}), []string{"registrationRateLimit", "v0.58.0", mine}},
		"a limit, newer": {current, authServer(func(s *v1beta1.EmbeddedAuthServerConfig) {
			s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "1m"}
		}), nil},
		"no new field": {mine, authServer(func(*v1beta1.EmbeddedAuthServerConfig) {}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			c.change(&in)
			result := mustRender(t, in, Options{RunnerImage: c.image})
			if len(result.Held) > 0 {
				t.Fatalf("held: %+v", result.Held)
			}
			var found []string
			for _, notice := range result.Notices {
				if notice.Reason == v1beta1.ReasonRunnerVersionUnknown {
					found = append(found, notice.Condition+": "+notice.Message)
				}
			}
			if len(found) != min(1, len(c.want)) {
				t.Fatalf("got %q, want one with %q", found, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(found[0], part) {
					t.Errorf("%q does not have %q", found[0], part)
				}
			}
		})
	}
}
