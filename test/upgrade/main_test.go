// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade proves what docs/upgrade.md says of going from the last release to this one and back: the commands, what is written
// and what is not, that no pod is replaced, and whose everything is then. Until there is a release, a pinned earlier commit of this
// repository stands for it; where the checkout does not have that commit, what needs it is skipped.
//
// Tests run one after the other: what they install is the cluster's.
package upgrade

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package. Freehold is not installed on it: each test does so.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	remove, err := harness.InstallPlugin(context.Background())
	defer remove()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no plugin:", err)
		return 1
	}
	return harness.Suite{Env: &env, Bare: true, Options: cluster.Options{AuditBodies: true}}.Run(m)
}
