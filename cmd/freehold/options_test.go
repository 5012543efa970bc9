// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/freehold-dev/freehold/pkg/settings"
)

// environment is an os.LookupEnv of its own.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// parse returns the options of an environment and of arguments.
func parse(t *testing.T, env environment, args ...string) *options {
	t.Helper()
	o := newOptions(env.lookup)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func defaults() options {
	return options{
		rendering: settings.Rendering{
			RunnerImage: "ghcr.io/stacklok/toolhive/proxyrunner:v0.63.0", RedisSecretKey: "redis-password", RedisTLS: "false", OpenShift: "auto", UsageMetrics: true,
			MaxObjectSize: 131072,
		},
		workers: 16, takeover: "auto", takeovers: 3, configRollouts: 10, configs: "auto", resync: 10 * time.Hour, qps: -1, healthAddress: ":8081", metricsAddress: ":8080",
		leaderElect: true, leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second,
		retryPeriod: 2 * time.Second, tracingSamplingRate: 1_000_000,
	}
}

func TestOptionsComeFromFlagsAndTheEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		env  environment
		args []string
		want func(*options)
	}{
		"nothing set": {want: func(*options) {}},
		"the environment": {
			env: environment{
				"WATCH_NAMESPACE": "a, b,,", "TOOLHIVE_RUNNER_IMAGE": "runner", "TOOLHIVE_PROXY_HOST": "127.0.0.1",
				"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "x,y", "TOOLHIVE_DEFAULT_REDIS_ADDR": "redis:6379",
				"TOOLHIVE_DEFAULT_REDIS_SECRET_NAME": "s", "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY": "k", "POD_NAMESPACE": "home",
				"TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED": "true", "TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME": "c", "TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY": "a",
				"TOOLHIVE_SKIP_UPDATE_CHECK": "true",
			},
			want: func(o *options) {
				o.namespaces, o.rendering.RunnerImage, o.rendering.ProxyHost, o.rendering.PullSecrets = []string{"a", "b"}, "runner", "127.0.0.1", []string{"x", "y"}
				o.rendering.RedisAddress, o.rendering.RedisSecret, o.rendering.RedisSecretKey, o.leaseNamespace = "redis:6379", "s", "k", "home"
				o.rendering.RedisTLS, o.rendering.RedisCASecret, o.rendering.RedisCAKey, o.rendering.UsageMetrics = "true", "c", "a", false
			},
		},
		"an empty variable is none": {
			env:  environment{"WATCH_NAMESPACE": "", "TOOLHIVE_RUNNER_IMAGE": "", "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY": ""},
			want: func(*options) {},
		},
		"flags go before the environment": {
			env: environment{
				"WATCH_NAMESPACE": "a", "TOOLHIVE_RUNNER_IMAGE": "runner", "TOOLHIVE_PROXY_HOST": "h",
				"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "x", "TOOLHIVE_DEFAULT_REDIS_ADDR": "redis:6379",
				"TOOLHIVE_DEFAULT_REDIS_SECRET_NAME": "s", "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY": "k",
				"POD_NAMESPACE": "home", "OPERATOR_OPENSHIFT": "true",
			},
			args: []string{
				"--watch-namespaces=c,d", "--runner-image=other", "--proxy-host=", "--default-image-pull-secrets=z",
				"--default-redis-address=r:1", "--default-redis-secret-name=t", "--default-redis-secret-key=l",
				"--leader-elect-resource-namespace=away", "--openshift=auto",
			},
			want: func(o *options) {
				o.namespaces, o.rendering.RunnerImage, o.rendering.PullSecrets = []string{"c", "d"}, "other", []string{"z"}
				o.rendering.RedisAddress, o.rendering.RedisSecret, o.rendering.RedisSecretKey, o.leaseNamespace = "r:1", "t", "l", "away"
			},
		},
		"flags without a variable": {
			args: []string{
				"--kubeconfig=/k", "--mcpserver-selector=shard in (a,b)", "--workers=3", "--takeover=manual", "--takeovers-at-once=7", "--config-rollouts-at-once=5", "--configs=toolhive", "--kube-api-qps=50", "--kube-api-burst=100", "--resync-period=0", "--health-probe-bind-address=0", "--metrics-bind-address=:1",
				"--metrics-secure", "--metrics-certificate-directory=/c",
				"--tracing-endpoint=collector:4317", "--tracing-sampling-rate-per-million=1000",
				"--leader-elect=false", "--leader-elect-resource-name=l", "--leader-elect-lease-duration=3s",
				"--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=1s",
			},
			want: func(o *options) {
				o.takeover, o.takeovers, o.configRollouts, o.configs = "manual", 7, 5, "toolhive"
				o.qps, o.burst = 50, 100
				o.metricsSecure, o.metricsCertificates, o.selector = true, "/c", "shard in (a,b)"
				o.tracingEndpoint, o.tracingSamplingRate = "collector:4317", 1000
				o.kubeconfig, o.workers, o.resync, o.healthAddress, o.metricsAddress = "/k", 3, 0, "0", ":1"
				o.leaderElect, o.leaseName, o.leaseDuration, o.renewDeadline, o.retryPeriod = false, "l", 3*time.Second, 2*time.Second, time.Second
			},
		},
		"OpenShift":                         {env: environment{"OPERATOR_OPENSHIFT": "TRUE"}, want: func(o *options) { o.rendering.OpenShift = "true" }},
		"anything but true is no OpenShift": {env: environment{"OPERATOR_OPENSHIFT": "yes"}, want: func(o *options) { o.rendering.OpenShift = "false" }},
		"even nothing, if it is set":        {env: environment{"OPERATOR_OPENSHIFT": ""}, want: func(o *options) { o.rendering.OpenShift = "false" }},
	} {
		t.Run(name, func(t *testing.T) {
			want := defaults()
			test.want(&want)
			if diff := cmp.Diff(&want, parse(t, test.env, test.args...), cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	valid := func(o *options) { o.leaseNamespace = "home" }
	for name, test := range map[string]struct {
		change func(*options)
		want   []string // parts of the error; none when it is valid
	}{
		"defaults in a pod":        {change: func(*options) {}},
		"no endpoints":             {change: func(o *options) { o.healthAddress, o.metricsAddress = "0", "0" }},
		"a Redis":                  {change: func(o *options) { o.rendering.RedisAddress = "redis:6379" }},
		"without a lease":          {change: func(o *options) { o.leaderElect, o.leaseNamespace = false, "" }},
		"a bad namespace":          {func(o *options) { o.namespaces = []string{"ok", "Not_ok"} }, []string{"--watch-namespaces", `"Not_ok"`}},
		"a bad platform":           {func(o *options) { o.rendering.OpenShift = "maybe" }, []string{"--openshift", `"maybe"`, "auto, true or false"}},
		"an unknown takeover":      {func(o *options) { o.takeover = "maybe" }, []string{"--takeover", "maybe", "manual"}},
		"nobody's configurations":  {func(o *options) { o.configs = "off" }, []string{"--configs", "none of auto, freehold, toolhive"}},
		"no rollout at a time":     {func(o *options) { o.configRollouts = 0 }, []string{"--config-rollouts-at-once", "less than 1"}},
		"no takeover at a time":    {func(o *options) { o.takeovers = 0 }, []string{"--takeovers-at-once", "less than 1"}},
		"nobody to work":           {func(o *options) { o.workers = 0 }, []string{"--workers", "less than 1"}},
		"a Redis without a port":   {func(o *options) { o.rendering.RedisAddress = "redis" }, []string{"--default-redis-address", "host:port"}},
		"a bad health address":     {func(o *options) { o.healthAddress = "8081" }, []string{"--health-probe-bind-address", "0 to turn it off"}},
		"a bad metrics address":    {func(o *options) { o.metricsAddress = "x" }, []string{"--metrics-bind-address", "0 to turn it off"}},
		"certificates without TLS": {func(o *options) { o.metricsCertificates = "/c" }, []string{"--metrics-certificate-directory", "--metrics-secure"}},
		"a good collector":         {func(o *options) { o.tracingEndpoint = "[::1]:4317" }, nil},
		"a bad collector":          {func(o *options) { o.tracingEndpoint = "collector" }, []string{"--tracing-endpoint", "host:port"}},
		"a collector by its URL":   {func(o *options) { o.tracingEndpoint = "http://collector:4317" }, []string{"--tracing-endpoint", "host:port"}},
		"less than no traces":      {func(o *options) { o.tracingSamplingRate = -1 }, []string{"--tracing-sampling-rate-per-million", "1000000"}},
		"more than all traces":     {func(o *options) { o.tracingSamplingRate = 1_000_001 }, []string{"--tracing-sampling-rate-per-million", "1000000"}},
		"a lease without a place":  {func(o *options) { o.leaseNamespace = "" }, []string{"--leader-elect-resource-namespace", "--leader-elect=false"}},
		"a shard":                  {change: func(o *options) { o.selector, o.leaseName = "shard=a", "freehold-a" }},
		"a shard without a lease":  {change: func(o *options) { o.selector, o.leaderElect = "shard=a", false }},
		"a lease of all":           {func(o *options) { o.selector = "shard=a" }, []string{"--mcpserver-selector", "--leader-elect-resource-name", "Role"}},
		"no selector":              {func(o *options) { o.selector, o.leaseName = "shard in", "x" }, []string{"--mcpserver-selector", "shard=a"}},
		"no looks without a cause": {change: func(o *options) { o.resync = 0 }},
		"looks without an end":     {func(o *options) { o.resync = -time.Nanosecond }, []string{"--resync-period", "-1ns", "1s", "0 turns it off"}},
		"looks without a pause":    {func(o *options) { o.resync = time.Millisecond }, []string{"--resync-period", "1ms", "1s", "0 turns it off"}},
		"looks every second":       {change: func(o *options) { o.resync = time.Second }},
		"a lease of no seconds":    {func(o *options) { o.leaseDuration = 900 * time.Millisecond }, []string{"--leader-elect-lease-duration", "900ms", "1s"}},
		"no lease of any length":   {change: func(o *options) { o.leaderElect, o.leaseDuration = false, 0 }},
		"no requests":              {func(o *options) { o.qps = 0 }, []string{"--kube-api-qps"}},
		"a burst of less than one": {func(o *options) { o.burst = -1 }, []string{"--kube-api-burst"}},
		"several mistakes at once": {func(o *options) { o.workers, o.rendering.OpenShift = -1, "" }, []string{"--workers", "--openshift"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := defaults()
			valid(&o)
			test.change(&o)
			err := o.validate()
			if len(test.want) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not tell of %s", err, part)
				}
			}
		})
	}
}

func TestWithoutANameTheLeaseIsThatOfAllMCPServers(t *testing.T) {
	for given, want := range map[string]string{"": "freehold", "other": "other"} {
		o := defaults()
		o.leaseName, o.leaseNamespace = given, "home"
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		if o.leaseName != want {
			t.Errorf("%q becomes %q, want %q", given, o.leaseName, want)
		}
	}
}
