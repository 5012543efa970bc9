// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waiting holds the suites of the tools that wait: what kstatus, the library that Flux and Helm use, says of an object at each
// moment of its life, and what Helm 4 does with a chart. It is a module of its own, as Helm depends on much that nothing else needs.
package waiting

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) {
	os.Exit(harness.Suite{Env: &env, Options: cluster.Options{AuditBodies: true}, KeepNamespaces: true}.Run(m))
}
