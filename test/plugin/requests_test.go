// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOwnersAsksOnce runs owners, as a program, on a Deployment with over 200 managed fields of 8 managers. It asks for the
// Deployment, as a kubectl get does, and for no other object: the audit log shows it. How long both take depends on what
// else the machine does, so the test prints it and does not judge it.
func TestOwnersAsksOnce(t *testing.T) {
	const managers, fieldsEach, runs = 8, 25, 7
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	for m := range managers {
		var variables []string
		for v := range fieldsEach {
			variables = append(variables, fmt.Sprintf(`{"name": "V%d", "value": "v"}`, v))
		}
		kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", fmt.Sprintf("--field-manager=manager-%d", m), "-f", "-"}, Input: fmt.Sprintf(`{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large"},
			"spec": {
				"replicas": 0, "selector": {"matchLabels": {"app": "large"}},
				"template": {"metadata": {"labels": {"app": "large"}}, "spec": {"containers": [
					{"name": "c%d", "image": "example.com/x:1", "env": [%s]}]}}
			}}`, m, strings.Join(variables, ", "))})
	}
	mark := ns.Mark(t)
	// They take turns, so that both meet the same machine. Of several runs the quickest counts.
	request, all := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range runs {
		_, took := timed(t, kubectl, "kubectl get deployment/large -o yaml --show-managed-fields")
		request = min(request, took)
		out, took := timed(t, kubectl, "kubectl-freehold owners deployment/large")
		all = min(all, took)
		if n := strings.Count(out, "manager-"); n < managers*fieldsEach {
			t.Fatalf("only %d lines have an owner", n)
		}
	}
	t.Logf("owners takes %v, the request alone %v: %.1f times as long",
		all.Round(time.Millisecond), request.Round(time.Millisecond), float64(all)/float64(request))

	ns.Mark(t) // What was sent is in the log when it is.
	sent, _, err := ns.Audit.Since(mark, func(e *audit.Event) bool {
		return strings.HasPrefix(e.UserAgent, "kubectl-freehold/") && strings.Contains(e.URI, ns.Name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent) != runs {
		t.Errorf("%d runs sent %d requests: %v", runs, len(sent), sent)
	}
}

// timed runs a command line, and returns what it printed and how long it took.
func timed(t *testing.T, kubectl *harness.Kubectl, line string) (out string, took time.Duration) {
	t.Helper()
	began := time.Now()
	out = kubectl.Shell(t, line)
	return out, time.Since(began)
}
