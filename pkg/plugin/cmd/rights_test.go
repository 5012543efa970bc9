// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"strings"
	"testing"
)

// narrowly runs the plugin as a user who may look for operators in these namespaces alone.
func (w *world) narrowly(namespaces []string, args ...string) (code int, out, errOut string) {
	w.t.Helper()
	return runOn(w.t, narrow{w.connect(), namespaces}, append(args, "--namespace=shop")...)
}

// narrow refuses to list Deployments, pods and Leases, but in some namespaces.
type narrow struct {
	http.RoundTripper
	namespaces []string
}

// RoundTrip implements http.RoundTripper.
func (n narrow) RoundTrip(request *http.Request) (*http.Response, error) {
	for _, resource := range []string{"/deployments", "/pods", "/leases"} {
		if !strings.HasSuffix(request.URL.Path, resource) {
			continue
		}
		for _, namespace := range n.namespaces {
			if strings.HasSuffix(request.URL.Path, "/namespaces/"+namespace+resource) {
				return n.RoundTripper.RoundTrip(request)
			}
		}
		return refusing{}.RoundTrip(request)
	}
	return n.RoundTripper.RoundTrip(request)
}

// A preview says whether it has looked for ToolHive's operator in its usual namespace or nowhere, and does not end as if it had looked.
func TestAPreviewSaysWhereItHasLookedForOperators(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces []string
		code       int
		out, says  string
	}{
		"the usual namespace": {namespaces: []string{"toolhive-system"}, code: ExitDone, says: "was looked for in toolhive-system alone"},
		"its own":             {namespaces: []string{"shop"}, code: ExitFailed, out: "whether an operator of ToolHive's runs", says: "not everything could be looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			code, out, errOut := w.narrowly(test.namespaces, "takeover", "--preview", "web", known)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(errOut, test.says) || test.code != ExitDone && strings.Contains(errOut, "alone") {
				t.Errorf("it ends with %d\n%s%s", code, out, errOut)
			}
		})
	}
}

// A handback does not begin where it is not known whether an operator runs, unless the user says that none does.
func TestAHandbackThatSeesNoOperatorsDoesNotBegin(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces, flags []string
		code              int
		says              string
	}{
		"not known":                {flags: []string{"--yes"}, code: ExitFailed, says: "--operators-stopped"},
		"one of the two":           {namespaces: []string{"freehold-system"}, flags: []string{"--yes"}, code: ExitFailed, says: "--operators-stopped"},
		"not known, and a dry run": {flags: []string{"--dry-run"}, code: ExitFailed, says: "--operators-stopped"},
		"the user knows":           {flags: []string{"--yes", "--operators-stopped"}, code: ExitDone, says: "whether an operator of Freehold's runs"},
		"the usual namespaces":     {namespaces: []string{"freehold-system", "toolhive-system"}, flags: []string{"--yes"}, code: ExitDone, says: "alone"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			code, out, errOut := w.narrowly(test.namespaces, append([]string{"handback", "web"}, test.flags...)...)
			if code != test.code || !strings.Contains(errOut, test.says) {
				t.Errorf("it ends with %d\n%s%s", code, out, errOut)
			}
			if wrote := len(w.writes) > 0; wrote != (test.code == ExitDone) {
				t.Errorf("it has sent %q", w.writes)
			}
		})
	}
}
