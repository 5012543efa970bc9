// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/pkg/render"
)

// envSkipUpdateCheck is the other variable, besides render.EnvUsageMetrics, that turns usage metrics off.
const envSkipUpdateCheck = "TOOLHIVE_SKIP_UPDATE_CHECK"

// Difference is a variable of another operator's environment with which that writes something else than an operator with some
// settings does.
type Difference struct {
	// Variable and its value.
	Variable string `json:"variable"`
	Value    string `json:"value,omitempty"`
	// Hidden is set where the value is in a ConfigMap or a Secret. It may be the same then.
	Hidden bool `json:"hidden,omitempty"`
	// Has is the setting as it is, as a flag, and Give as it would have to be; empty where the value is hidden.
	Has  string `json:"has"`
	Give string `json:"give,omitempty"`
}

// compared are the variables that New reads, in the order of the documentation.
var compared = []struct {
	variable, flag string
	of             func(*render.Options) string
}{
	{"TOOLHIVE_RUNNER_IMAGE", "runner-image", func(o *render.Options) string { return cmp.Or(o.RunnerImage, render.DefaultRunnerImage) }},
	{"TOOLHIVE_PROXY_HOST", "proxy-host", func(o *render.Options) string { return cmp.Or(o.ProxyHost, render.DefaultProxyHost) }},
	{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", "default-image-pull-secrets", func(o *render.Options) string {
		return strings.Join(o.ImagePullSecrets, ",")
	}},
	{"TOOLHIVE_DEFAULT_REDIS_ADDR", "default-redis-address", ofRedis(func(r *render.Redis) string { return r.Address })},
	{"TOOLHIVE_DEFAULT_REDIS_SECRET_NAME", "default-redis-secret-name", ofRedis(func(r *render.Redis) string { return r.PasswordSecret })},
	{"TOOLHIVE_DEFAULT_REDIS_SECRET_KEY", "default-redis-secret-key", ofRedis(func(r *render.Redis) string { return r.PasswordKey })},
	{"TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED", "default-redis-tls", ofRedis(func(r *render.Redis) string { return strconv.FormatBool(r.TLS) })},
	{"TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME", "default-redis-tls-ca-secret-name", ofRedis(func(r *render.Redis) string { return r.CASecret })},
	{"TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY", "default-redis-tls-ca-secret-key", ofRedis(func(r *render.Redis) string { return r.CAKey })},
	{"OPERATOR_OPENSHIFT", "openshift", func(o *render.Options) string { return strconv.FormatBool(o.OpenShift) }},
	{render.EnvUsageMetrics, "usage-metrics", reportsUsage},
	{envSkipUpdateCheck, "usage-metrics", reportsUsage},
}

// ofRedis returns a part of the default Redis; that of none where there is no such Redis.
func ofRedis(part func(*render.Redis) string) func(*render.Options) string {
	return func(o *render.Options) string { return part(cmp.Or(o.DefaultRedis, &render.Redis{})) }
}

func reportsUsage(o *render.Options) string { return strconv.FormatBool(!o.NoUsageMetrics) }

// Differences compares the environment of ToolHive's operator with the settings of Freehold's. A variable that is not set, or that has
// no effect beside another one, is no difference. Hidden reports of a variable whether its value is not in that environment.
func Differences(theirs Environment, hidden func(variable string) bool, ours render.Options) (all []Difference) {
	rendering := New(theirs)
	options := rendering.Options(rendering.OpenShift == platformOpenShift)
	for _, c := range compared {
		is, wanted := c.of(&ours), c.of(&options)
		found := Difference{Variable: c.variable, Value: theirs.Get(c.variable, ""), Has: "--" + c.flag + "=" + is}
		switch {
		case hidden(c.variable):
			found.Value, found.Hidden = "", true
		case found.Value == "" || is == wanted || !decides(theirs, c.variable):
			continue
		default:
			found.Give = "--" + c.flag + "=" + wanted
		}
		all = append(all, found)
	}
	return all
}

// decides reports whether a variable has an effect: either of two turns usage metrics off, and one is enough to name.
func decides(env Environment, variable string) bool {
	skips := strings.EqualFold(env.Get(envSkipUpdateCheck, ""), "true") && env.Get(render.EnvUsageMetrics, "") != "false"
	switch variable {
	case render.EnvUsageMetrics:
		return !skips
	case envSkipUpdateCheck:
		return skips
	}
	return true
}
