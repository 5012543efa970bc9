// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consumer holds the suites of those who use Freehold's packages from outside: the programs under examples/,
// each a module of its own, are built as their users would and run as processes against a real API server, with the
// operator at work beside them.
package consumer

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) {
	os.Exit(harness.Suite{Env: &env, Options: cluster.Options{AuditBodies: true}}.Run(m))
}
