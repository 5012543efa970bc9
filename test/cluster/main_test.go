// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the suites that need a real API server. They share one control plane; each test has a
// namespace of its own, and operators that watch that namespace alone. After the last test, everything that the
// operators asked the API server for is held against the invariants, see harness.Invariants.
//
// The environment variable FREEHOLD_IDLE is how long TestQuiet watches a fleet that has all it needs, as a Go
// duration. Default: 30s. What Freehold promises is 2m. FREEHOLD_PROPERTY_CHECKS is how many stories TestProperty tells.
// Default: 12.
package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// atOnce is how many tests run at a time for each processor unless -parallel says otherwise: they wait part of the time.
const atOnce = 3

// shown is how many violations of the invariants are shown in full.
const shown = 20

// updateNumbers writes what the suites counted into the documentation.
var updateNumbers = flag.Bool("update-numbers", false, "write the numbers of this run into docs/ownership.md")

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce*runtime.GOMAXPROCS(0))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}

	ctx := context.Background()
	var err error
	env, err = harness.New(ctx, cluster.Options{AuditBodies: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "no control plane for the suites:", err)
		return 1
	}
	code := m.Run()
	if err := checkInvariants(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if *updateNumbers && code == 0 {
		if err := env.Numbers.Publish("../../docs/ownership.md"); err != nil {
			fmt.Fprintln(os.Stderr, "the numbers are not written:", err)
			code = 1
		}
	}
	if err := env.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not end well:", err)
		return 1
	}
	return code
}

// checkInvariants judges all requests of all operators.
func checkInvariants(ctx context.Context) error {
	began := time.Now()
	violations, requests, err := env.Violations(ctx)
	if err != nil {
		return fmt.Errorf("the invariants cannot be checked: %w", err)
	}
	fmt.Printf("Invariants: looked at %d requests in %v, %d violations\n",
		requests, time.Since(began).Round(time.Millisecond), len(violations))
	for i, v := range violations {
		if i == shown {
			fmt.Printf("... and %d more\n", len(violations)-shown)
			break
		}
		fmt.Println(v)
	}
	env.Numbers.Add("all suites: requests of operators looked at in the audit log", requests)
	env.Numbers.Add("all suites: requests of operators that should not have been", len(violations))
	if len(violations) > 0 {
		return fmt.Errorf("--- FAIL: %d requests of the operator should not have been", len(violations))
	}
	return nil
}
