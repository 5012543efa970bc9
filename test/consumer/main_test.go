// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consumer holds the suites of those who use Freehold's packages from outside: the programs under examples/,
// each a module of its own, are built as their users would and run as processes against a real API server, with the
// operator at work beside them.
package consumer

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	var err error
	env, err = harness.New(ctx, cluster.Options{AuditBodies: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "no control plane for the suites:", err)
		return 1
	}
	code := m.Run()
	violations, requests, err := env.Violations(ctx)
	fmt.Printf("Invariants: looked at %d requests, %d violations\n", requests, len(violations))
	if err != nil || len(violations) > 0 {
		fmt.Fprintln(os.Stderr, "--- FAIL: the operator's requests:", err, violations)
		code = 1
	}
	if err := env.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not end well:", err)
		return 1
	}
	return code
}
