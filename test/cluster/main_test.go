// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the suites that need a real API server. They share one control plane; each test has a
// namespace of its own, and operators that watch that namespace alone. After the last test, everything that the
// operators asked the API server for is held against the invariants, see harness.Invariants.
//
// The environment variable FREEHOLD_IDLE is how long TestQuiet watches a fleet that has all it needs, as a Go
// duration. Default: 30s. What Freehold promises is 2m. FREEHOLD_PROPERTY_CHECKS is how many scenarios TestProperty plays.
// Default: 12.
package cluster

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// atOnce is how many tests run at a time for each processor: they wait part of the time.
const atOnce = 3

// updateNumbers writes what the suites counted into the documentation.
var updateNumbers = flag.Bool("update-numbers", false, "write the numbers of this run into docs/ownership.md")

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	harness.AtOnce(atOnce * runtime.GOMAXPROCS(0))
	code := harness.Suite{Env: &env, Options: cluster.Options{AuditBodies: true}}.Run(m)
	if *updateNumbers && code == 0 {
		if err := env.Numbers.Publish("../../docs/ownership.md"); err != nil {
			fmt.Fprintln(os.Stderr, "the numbers are not written:", err)
			return 1
		}
	}
	return code
}
