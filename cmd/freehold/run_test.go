// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

// try runs the program with arguments that make it end by itself, and returns what it printed.
func try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	resetLogs(t)
	var stdout bytes.Buffer
	err := run(t.Context(), args, environment{"POD_NAMESPACE": "home"}.lookup, &stdout)
	return stdout.String(), err
}

// resetLogs undoes the settings of the logs, which a process makes once.
func resetLogs(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		gate := featuregate.NewFeatureGate()
		if err := logsapi.AddFeatureGates(gate); err != nil {
			t.Error(err)
		}
		if err := logsapi.ResetForTest(gate); err != nil {
			t.Error(err)
		}
		// It begins to flush the log every few seconds, and the settings of the next test would race with that.
		klog.StopFlushDaemon()
	})
}

func TestVersionIsPrintedWhateverTheOtherFlagsAre(t *testing.T) {
	got, err := try(t, "--version", "--workers=0")
	if want := version.Get().GitVersion + "\n"; err != nil || got != want {
		t.Errorf("printed %q with error %v, want %q whatever the other flags are", got, err, want)
	}
}

func TestHelpNamesEveryFlagAndVariable(t *testing.T) {
	got, err := try(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	o := newOptions(func(name string) (string, bool) { read[name] = true; return "", false })
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { read["--"+f.Name+" "] = true })
	for name := range read {
		if !strings.Contains(got, name) {
			t.Errorf("the help does not name %s", name)
		}
	}
	for _, part := range []string{"Usage:", "--logging-format", "--v ", "--version"} {
		if !strings.Contains(got, part) {
			t.Errorf("the help has no %s", part)
		}
	}
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("clusters: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(dir, "silent")
	if err := os.WriteFile(silent, []byte(kubeconfig("http://127.0.0.1:"+freePort(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"an unknown flag":         {[]string{"--nonsense"}, []string{"--nonsense"}},
		"a value of another type": {[]string{"--workers=many"}, []string{"--workers", "many"}},
		"an argument":             {[]string{"serve"}, []string{`"serve"`, "--help"}},
		"a setting that is wrong": {[]string{"--workers=0"}, []string{"--workers"}},
		"an unknown log format":   {[]string{"--logging-format=xml"}, []string{"xml"}},
		"a kubeconfig that is not there": {
			[]string{"--kubeconfig=" + filepath.Join(dir, "nothing")}, []string{"no access to a cluster", "nothing", "--kubeconfig"},
		},
		"a kubeconfig that is none":          {[]string{"--kubeconfig=" + broken}, []string{"no access to a cluster", "--kubeconfig"}},
		"a kubeconfig without a cluster":     {[]string{"--kubeconfig=" + empty}, []string{"no access to a cluster", "--kubeconfig"}},
		"an API server that does not answer": {[]string{"--kubeconfig=" + silent}, []string{"OpenShift", "--openshift", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, err := try(t, test.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not tell of %s", err, part)
				}
			}
			if stdout != "" {
				t.Errorf("printed %q; the error is enough", stdout)
			}
		})
	}
}

func kubeconfig(server string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + server + `"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
`
}

// A limit holds for all clients together. The lease has none: who waits for it behind everything else loses it.
func TestARequestLimitHoldsForAllClientsButTheLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig("http://127.0.0.1:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		qps         float32
		burst, want int
	}{
		"none":            {qps: -1},
		"a rate":          {qps: 50, want: 50},
		"a rate and more": {qps: 50, burst: 200, want: 200},
		"a low rate":      {qps: 0.5, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := defaults()
			o.kubeconfig, o.qps, o.burst = path, test.qps, test.burst
			config, err := restConfig(&o)
			if err != nil {
				t.Fatal(err)
			}
			core, servers, _, err := newClients(config)
			if err != nil {
				t.Fatal(err)
			}
			leases, err := leaseClient(config)
			if err != nil {
				t.Fatal(err)
			}
			if limiter := leases.CoordinationV1().RESTClient().GetRateLimiter(); limiter != nil {
				t.Errorf("the lease is limited to %v", limiter.QPS())
			}
			one, other := core.AppsV1().RESTClient().GetRateLimiter(), servers.ToolhiveV1beta1().RESTClient().GetRateLimiter()
			if one != other || config.RateLimiter != one {
				t.Error("two clients have a limit each")
			}
			if test.want == 0 {
				if one != nil {
					t.Errorf("the limit is %v", one.QPS())
				}
				return
			}
			if one.QPS() != test.qps {
				t.Errorf("the rate is %v, want %v", one.QPS(), test.qps)
			}
			burst := 0
			for burst <= test.want && one.TryAccept() {
				burst++
			}
			if burst < test.want || burst > test.want+1 { // One token may come while they are taken.
				t.Errorf("%d requests go at once, want %d", burst, test.want)
			}
		})
	}
}

// A Retry-After of an hour, in a header or in the body of an answer, is no hour of sleep for the goroutine that sent the request.
func TestRetryAfterDoesNotSleep(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"details":{"retryAfterSeconds":3600}}`, code)
		}))
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(kubeconfig(server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
		o := defaults()
		o.kubeconfig = path
		config, err := restConfig(&o)
		if err != nil {
			t.Fatal(err)
		}
		core, _, _, err := newClients(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, listed := core.CoreV1().Services("shop").List(ctx, metav1.ListOptions{})
		_, watched := core.CoreV1().Services("shop").Watch(ctx, metav1.ListOptions{})
		cancel()
		server.Close()
		for _, err := range []error{listed, watched} {
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != int32(code) {
				t.Errorf("%d: the answer is %v", code, err)
			}
		}
		if requests != 2 {
			t.Errorf("%d: %d requests were sent, want one of each", code, requests)
		}
	}
}
