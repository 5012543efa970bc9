// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/settings"
)

type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// parse returns the settings of an environment and of arguments.
func parse(t *testing.T, env environment, args ...string) *settings.Rendering {
	t.Helper()
	r := settings.New(env.lookup)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	r.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOptionsComeFromArgumentsAndTheEnvironment(t *testing.T) {
	want := render.Options{MaxObjectSize: bounds.DefaultSize, RunnerImage: render.DefaultRunnerImage, OpenShift: true}
	if diff := cmp.Diff(want, parse(t, nil).Options(true)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	env := environment{"TOOLHIVE_DEFAULT_REDIS_ADDR": "redis:6379", "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "a, b,"}
	want = render.Options{
		MaxObjectSize: bounds.DefaultSize,
		RunnerImage:   "mine", ProxyHost: "127.0.0.1", ImagePullSecrets: []string{"a", "b"}, DefaultRedis: &render.Redis{Address: "redis:6379"},
	}
	args := []string{"--runner-image=mine", "--proxy-host=127.0.0.1"}
	if diff := cmp.Diff(want, parse(t, env, args...).Options(false)); diff != "" {
		t.Errorf("with a Redis that has no password, and a key of nothing (-want +got):\n%s", diff)
	}
	want.DefaultRedis.PasswordSecret, want.DefaultRedis.PasswordKey = "secret", "redis-password"
	want.ImagePullSecrets = []string{"c"}
	args = append(args, "--default-redis-secret-name=secret", "--default-image-pull-secrets=c")
	if diff := cmp.Diff(want, parse(t, env, args...).Options(false)); diff != "" {
		t.Errorf("with a password (-want +got):\n%s", diff)
	}
	env["TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED"] = "1"
	env["TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME"], env["TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY"] = "ca", "root.pem"
	want.DefaultRedis.TLS, want.DefaultRedis.CASecret, want.DefaultRedis.CAKey = true, "ca", "root.pem"
	if diff := cmp.Diff(want, parse(t, env, args...).Options(false)); diff != "" {
		t.Errorf("with TLS (-want +got):\n%s", diff)
	}
	want.DefaultRedis.CASecret, want.DefaultRedis.CAKey = "other", "ca.crt"
	env["TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED"] = ""
	args = append(args, "--default-redis-tls", "--default-redis-tls-ca-secret-name=other", "--default-redis-tls-ca-secret-key=ca.crt")
	if diff := cmp.Diff(want, parse(t, env, args...).Options(false)); diff != "" {
		t.Errorf("with TLS by flags (-want +got):\n%s", diff)
	}
}

// The proxyrunner makes an address by appending a colon and the port.
func TestTheAddressOfProxiesTakesAPort(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "localhost": "localhost", "0.0.0.0": "0.0.0.0", "127.0.0.1": "127.0.0.1", "::": "[::]", "[::]": "[::]", "::1": "[::1]", "fd00::0:1": "[fd00::1]",
	} {
		r := parse(t, nil, "--proxy-host="+given)
		if err := r.Validate(); err != nil {
			t.Errorf("%s is refused: %v", given, err)
		}
		if got := r.Options(false).ProxyHost; got != want {
			t.Errorf("%s becomes %s, want %s", given, got, want)
		} else if _, err := net.ResolveTCPAddr("tcp", got+":8080"); err != nil {
			t.Errorf("%s cannot be listened on: %v", given, err)
		}
	}
}

// Both of the variables with which ToolHive's operator turns usage metrics off do, in ToolHive's spellings, and the flag goes before them.
func TestEitherVariableTurnsUsageMetricsOff(t *testing.T) {
	const enabled, skip = "TOOLHIVE_USAGE_METRICS_ENABLED", "TOOLHIVE_SKIP_UPDATE_CHECK"
	for _, test := range []struct {
		env  environment
		args []string
		off  bool
	}{
		{},
		{env: environment{enabled: "", skip: ""}},
		{env: environment{enabled: "true", skip: "false"}},
		{env: environment{enabled: "no", skip: "1"}},
		{env: environment{enabled: "false"}, off: true},
		{env: environment{skip: "True"}, off: true},
		{env: environment{enabled: "true", skip: "true"}, off: true},
		{env: environment{skip: "true"}, args: []string{"--usage-metrics"}},
		{args: []string{"--usage-metrics=false"}, off: true},
	} {
		if got := parse(t, test.env, test.args...).Options(false).NoUsageMetrics; got != test.off {
			t.Errorf("environment %v, arguments %v: turned off: %t", test.env, test.args, got)
		}
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string // parts of the error; none when it is valid
	}{
		"defaults":               {},
		"a Redis":                {args: []string{"--default-redis-address=redis:6379", "--openshift=true"}},
		"a bad platform":         {[]string{"--openshift=maybe"}, []string{"--openshift", `"maybe"`, "auto, true or false"}},
		"a Redis without a port": {[]string{"--default-redis-address=redis"}, []string{"--default-redis-address", "host:port"}},
		"a Redis with TLS":       {args: []string{"--default-redis-address=redis:6379", "--default-redis-tls"}},
		"a Redis with TLS and its authorities": {args: []string{
			"--default-redis-address=redis:6379", "--default-redis-tls=true", "--default-redis-tls-ca-secret-name=s", "--default-redis-tls-ca-secret-key=k",
		}},
		"neither TLS nor not": {
			[]string{"--default-redis-address=redis:6379", "--default-redis-tls=yes"}, []string{"--default-redis-tls", `"yes"`, "neither true nor false"},
		},
		"TLS without a Redis": {[]string{"--default-redis-tls"}, []string{"--default-redis-tls needs --default-redis-address"}},
		"authorities without TLS": {
			[]string{"--default-redis-address=redis:6379", "--default-redis-tls-ca-secret-name=s", "--default-redis-tls-ca-secret-key=k"},
			[]string{"--default-redis-tls-ca-secret-name needs --default-redis-tls"},
		},
		"authorities without a key": {
			[]string{"--default-redis-address=redis:6379", "--default-redis-tls", "--default-redis-tls-ca-secret-name=s"},
			[]string{"--default-redis-tls-ca-secret-key", "need each other"},
		},
		"a key without authorities": {
			[]string{"--default-redis-address=redis:6379", "--default-redis-tls", "--default-redis-tls-ca-secret-key=k"},
			[]string{"--default-redis-tls-ca-secret-name", "need each other"},
		},
		"an address with a port": {[]string{"--proxy-host=0.0.0.0:8080"}, []string{"--proxy-host", `"0.0.0.0:8080"`, "give an IP address, or localhost"}},
		"a name":                 {[]string{"--proxy-host=proxy"}, []string{"--proxy-host", `"proxy"`}},
		"half an address":        {[]string{"--proxy-host=[::"}, []string{"--proxy-host"}},
		"both":                   {[]string{"--default-redis-address=redis", "--openshift="}, []string{"--openshift", "--default-redis-address"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := parse(t, nil, test.args...).Validate()
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not tell of %s", err, part)
				}
			}
		})
	}
}

func TestThePlatformIsAskedUnlessItIsSet(t *testing.T) {
	groups := func(names ...string) func() (*metav1.APIGroupList, error) {
		list := &metav1.APIGroupList{}
		for _, name := range names {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
		}
		return func() (*metav1.APIGroupList, error) { return list, nil }
	}
	silent := func() (*metav1.APIGroupList, error) { return nil, errors.New("no answer") }
	for _, test := range []struct {
		env    environment
		groups func() (*metav1.APIGroupList, error)
		want   bool
	}{
		{nil, groups("apps"), false},
		{nil, groups("apps", "route.openshift.io"), true},
		// A setting asks nobody.
		{environment{"OPERATOR_OPENSHIFT": "TRUE"}, silent, true},
		{environment{"OPERATOR_OPENSHIFT": "yes"}, silent, false},
		{environment{"OPERATOR_OPENSHIFT": ""}, silent, false},
	} {
		if got, err := parse(t, test.env).IsOpenShift(test.groups); err != nil || got != test.want {
			t.Errorf("environment %v: %t, %v; want %t", test.env, got, err, test.want)
		}
	}
	if _, err := parse(t, nil).IsOpenShift(silent); err == nil || !strings.Contains(err.Error(), "--openshift") {
		t.Errorf("error %v, want one that tells what to set", err)
	}
}

func TestAListHasNoEmptyEntries(t *testing.T) {
	if got := settings.List("a, b,,c "); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
	if got := settings.List(" , "); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}
