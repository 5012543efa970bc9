// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/test/harness"
)

// quick is how long owners may take besides the request.
const quick = 200 * time.Millisecond

// TestOwnersIsQuick runs owners, as a program, on a Deployment with over 200 managed fields of 8 managers, and compares the
// time with that of a kubectl which does no more than the request. Of several runs the quickest counts: the others tell
// what else the machine does.
func TestOwnersIsQuick(t *testing.T) {
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
	best := func(line string) (least time.Duration, out string) {
		for range runs {
			begin := time.Now()
			out = kubectl.Shell(t, line)
			if took := time.Since(begin); least == 0 || took < least {
				least = took
			}
		}
		return least, out
	}
	request, _ := best("kubectl get deployment/large -o yaml --show-managed-fields")
	all, out := best("kubectl-freehold owners deployment/large")
	if n := strings.Count(out, "manager-"); n < managers*fieldsEach {
		t.Fatalf("only %d lines have an owner", n)
	}
	t.Logf("owners takes %v, the request alone %v", all.Round(time.Millisecond), request.Round(time.Millisecond))
	if all-request >= quick {
		t.Errorf("owners takes %v more than the request, want less than %v", all-request, quick)
	}
}
