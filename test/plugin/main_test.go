// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin holds the suites of kubectl freehold. They run it against a real API server, on objects that the real
// operator, the real kubectl and other writers have made, and compare what it prints with golden files: go test
// ./plugin -update writes them anew.
//
// There are no controllers but the operator: what the others would do is done by hand, so that the objects are the same
// each time.
package plugin

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// update writes the golden files.
var update = flag.Bool("update", false, "write what the plugin prints into the golden files")

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	remove, err := harness.InstallPlugin(context.Background())
	defer remove()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no plugin:", err)
		return 1
	}
	return harness.Suite{Env: &env, Options: cluster.Options{APIServerOnly: true, AuditBodies: true}}.Run(m)
}
