// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/settings"
)

func TestADifferenceSaysWhatToGive(t *testing.T) {
	usage := func(variable, value, has, give string) []settings.Difference {
		return []settings.Difference{{Variable: variable, Value: value, Has: "--usage-metrics=" + has, Give: "--usage-metrics=" + give}}
	}
	for name, c := range map[string]struct {
		theirs, ours environment
		hidden       string
		want         []settings.Difference
	}{
		"nothing": {},
		"what the chart sets by default": {theirs: environment{
			"TOOLHIVE_RUNNER_IMAGE": render.DefaultRunnerImage, "TOOLHIVE_PROXY_HOST": "0.0.0.0", "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "",
			"OPERATOR_OPENSHIFT": "false", "WATCH_NAMESPACE": "tools", "TOOLHIVE_USAGE_METRICS_ENABLED": "true",
		}},
		"pull secrets": {theirs: environment{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "regcred, other"}, want: []settings.Difference{{
			Variable: "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", Value: "regcred, other",
			Has: "--default-image-pull-secrets=", Give: "--default-image-pull-secrets=regcred,other",
		}}},
		"the same pull secrets": {
			theirs: environment{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "regcred, other"},
			ours:   environment{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "regcred,other"},
		},
		"the proxies' address": {theirs: environment{"TOOLHIVE_PROXY_HOST": "127.0.0.1"}, want: []settings.Difference{
			{Variable: "TOOLHIVE_PROXY_HOST", Value: "127.0.0.1", Has: "--proxy-host=0.0.0.0", Give: "--proxy-host=127.0.0.1"},
		}},
		"a Redis with all that it takes": {
			theirs: environment{
				"TOOLHIVE_DEFAULT_REDIS_ADDR": "redis:6379", "TOOLHIVE_DEFAULT_REDIS_SECRET_NAME": "redis", "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY": "p",
				"TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED": "true", "TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME": "ca", "TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY": "crt",
			},
			ours: environment{"TOOLHIVE_DEFAULT_REDIS_ADDR": "redis:6379"},
			want: []settings.Difference{
				{"TOOLHIVE_DEFAULT_REDIS_SECRET_NAME", "redis", false, "--default-redis-secret-name=", "--default-redis-secret-name=redis"},
				{"TOOLHIVE_DEFAULT_REDIS_SECRET_KEY", "p", false, "--default-redis-secret-key=", "--default-redis-secret-key=p"},
				{"TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED", "true", false, "--default-redis-tls=false", "--default-redis-tls=true"},
				{"TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME", "ca", false, "--default-redis-tls-ca-secret-name=", "--default-redis-tls-ca-secret-name=ca"},
				{"TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY", "crt", false, "--default-redis-tls-ca-secret-key=", "--default-redis-tls-ca-secret-key=crt"},
			},
		},
		"parts of a Redis without an address": {theirs: environment{"TOOLHIVE_DEFAULT_REDIS_SECRET_NAME": "redis", "TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED": "true"}},
		"OpenShift": {theirs: environment{"OPERATOR_OPENSHIFT": "true"}, want: []settings.Difference{
			{Variable: "OPERATOR_OPENSHIFT", Value: "true", Has: "--openshift=false", Give: "--openshift=true"},
		}},
		"no usage metrics": {
			theirs: environment{"TOOLHIVE_USAGE_METRICS_ENABLED": "false", "TOOLHIVE_SKIP_UPDATE_CHECK": "true"},
			want:   usage("TOOLHIVE_USAGE_METRICS_ENABLED", "false", "true", "false"),
		},
		"no update checks": {
			theirs: environment{"TOOLHIVE_USAGE_METRICS_ENABLED": "true", "TOOLHIVE_SKIP_UPDATE_CHECK": "True"},
			want:   usage("TOOLHIVE_SKIP_UPDATE_CHECK", "True", "true", "false"),
		},
		"no usage metrics, by another variable": {
			theirs: environment{"TOOLHIVE_SKIP_UPDATE_CHECK": "true"}, ours: environment{"TOOLHIVE_USAGE_METRICS_ENABLED": "false"},
		},
		"a value that is elsewhere": {
			hidden: "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS",
			want:   []settings.Difference{{Variable: "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", Hidden: true, Has: "--default-image-pull-secrets="}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := settings.New(c.ours.lookup).Options(false)
			got := settings.Differences(c.theirs.lookup, func(name string) bool { return name == c.hidden }, ours)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryVariableIsCompared: a variable that New reads has to be compared as well.
func TestEveryVariableIsCompared(t *testing.T) {
	var read []string
	settings.New(func(name string) (string, bool) {
		read = append(read, name)
		return "", false
	})
	hidden := settings.Differences(environment{}.lookup, func(string) bool { return true }, render.Options{})
	for _, variable := range read {
		if !slices.ContainsFunc(hidden, func(d settings.Difference) bool { return d.Variable == variable }) {
			t.Errorf("%s is not compared", variable)
		}
	}
}
