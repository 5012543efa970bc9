// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The proxies report unless they are told not to; without the setting nothing is rendered.
func TestProxiesReportUsageUnlessToldNotTo(t *testing.T) {
	const name = "TOOLHIVE_USAGE_METRICS_ENABLED"
	for label, c := range map[string]struct {
		options Options
		env     []v1beta1.EnvVar
		want    string
	}{
		"on":                  {},
		"off":                 {options: Options{NoUsageMetrics: true}, want: name + "=false"},
		"off, but for itself": {Options{NoUsageMetrics: true}, []v1beta1.EnvVar{{Name: name, Value: "true"}}, name + "=true"},
	} {
		t.Run(label, func(t *testing.T) {
			result := mustRender(t, Input{Server: newServer(func(s *v1beta1.MCPServer) {
				s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{Env: c.env}}
			})}, c.options)
			var got []string
			for _, variable := range envOf(deploymentOf(t, result).Spec.Template.Spec.Containers[0].Env) {
				if strings.HasPrefix(variable, name) {
					got = append(got, variable)
				}
			}
			if strings.Join(got, " ") != c.want || len(result.Notices) > 0 {
				t.Errorf("got %q and notices %v, want %q", got, result.Notices, c.want)
			}
		})
	}
}
