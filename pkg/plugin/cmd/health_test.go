// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freehold-dev/freehold/pkg/plugin/health"
)

// refusing is an API server that lets the user do nothing, or is not there.
type refusing struct{ gone bool }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.gone {
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope"}`)),
	}, nil
}

// runOn runs the plugin on a server.
func runOn(t *testing.T, server http.RoundTripper, args ...string) (code int, out, errOut string) {
	t.Helper()
	return runExactly(t, server, append(args, optionsFor(t)...))
}

// optionsFor are the options by which a run of the plugin reaches the API server of a test.
func optionsFor(t *testing.T) []string {
	t.Helper()
	return []string{"--kubeconfig=" + os.DevNull, "--server=http://apiserver.invalid", "--cache-dir=" + t.TempDir()}
}

func runExactly(t *testing.T, server http.RoundTripper, args []string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := OfProcess()
	env.Out, env.ErrOut = &stdout, &stderr
	env.Clock = clocktesting.NewFakeClock(time.Now())
	env.WrapConfig = func(config *rest.Config) *rest.Config {
		config.Transport = server
		return config
	}
	code = Run(t.Context(), env, args)
	return code, stdout.String(), stderr.String()
}

// What the user may not look at is no all-clear: the exit code says so, and the answer for programs is whole.
func TestWhatMayNotBeLookedAtIsNoAllClear(t *testing.T) {
	code, out, errOut := runOn(t, refusing{}, "doctor", "-o", "json")
	var found health.Diagnosis
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != ExitFailed || found.State != health.NotChecked {
		t.Errorf("doctor ends with %d, %v, and is %s", code, err, found.State)
	}
	for _, c := range found.Checks {
		if c.State != health.NotChecked {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
	if !strings.Contains(errOut, "not everything could be looked at") {
		t.Errorf("it says %q", errOut)
	}
	if code, _, errOut := runOn(t, refusing{}, "status"); code != ExitFailed || !strings.Contains(errOut, "cannot list") {
		t.Errorf("status ends with %d: %s", code, errOut)
	}
}

func TestHealthWithoutAClusterFails(t *testing.T) {
	for _, verb := range []string{"doctor", "status"} {
		if code, out, errOut := runOn(t, refusing{gone: true}, verb); code != ExitFailed || out != "" || !strings.Contains(errOut, "connection refused") {
			t.Errorf("%s ends with %d, and prints %q, %q", verb, code, out, errOut)
		}
	}
}

func TestWrongUsageOfHealthIsRefusedBeforeARequest(t *testing.T) {
	for _, args := range [][]string{{"doctor", "-o", "xml"}, {"doctor", "mcpserver/web"}, {"status", "--operator=freehold"}, {"status", "web", "other"}, {"status", "web", "-A"}, {"take"}, {"diff"}} {
		if code, _, errOut := runOn(t, refusing{gone: true}, args...); code != ExitFailed || strings.Contains(errOut, "connection") {
			t.Errorf("%v ends with %d: %s", args, code, errOut)
		}
	}
}

// What is wrong goes before what could not be looked at.
func TestWhatIsWrongDecidesOnTheExitCodeOfHealth(t *testing.T) {
	for _, test := range []struct {
		wrong, unknown bool
		want           int
	}{{false, false, ExitDone}, {true, false, ExitFound}, {false, true, ExitFailed}, {true, true, ExitFound}} {
		var out bytes.Buffer
		p, _ := build(Environment{Clock: clocktesting.NewFakeClock(time.Now())})
		p.machine = &out
		o := &viewer{planner: planner{plugin: p}, output: "json"}
		if code, _ := codeOf(o.answer(nil, test.wrong, test.unknown)); code != test.want || out.Len() == 0 {
			t.Errorf("wrong %v, not looked at %v: %d, want %d", test.wrong, test.unknown, code, test.want)
		}
	}
}

// bare is an API server on which nothing is installed. It counts its requests.
type bare struct{ requests int }

func (b *bare) RoundTrip(request *http.Request) (*http.Response, error) {
	b.requests++
	return &http.Response{
		StatusCode: http.StatusNotFound, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)),
	}, nil
}

// doctor --wait looks again until there is no error or its time is over, by its clock, which moves only while it waits.
func TestDoctorWaitsNoLongerThanItIsTold(t *testing.T) {
	once, waiting := &bare{}, &bare{}
	if code, _, _ := runOn(t, once, "doctor"); code != ExitFound {
		t.Fatalf("without an installation it ends with %d", code)
	}
	if code, _, _ := runOn(t, waiting, "doctor", "--wait=10s"); code != ExitFound || waiting.requests < 5*once.requests || waiting.requests > 7*once.requests {
		t.Errorf("it ends with %d after %d requests, and one look has %d", code, waiting.requests, once.requests)
	}
	well := refusing{}
	if code, _, _ := runOn(t, well, "doctor", "--wait=10s"); code != ExitFailed {
		t.Errorf("it ends with %d where nothing is known to be wrong", code)
	}
}
