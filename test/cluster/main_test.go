// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the suites that need a real API server. They share one control plane; each test has a
// namespace of its own.
package cluster

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
	var err error
	env, err = harness.New(context.Background(), cluster.Options{AuditBodies: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "no control plane for the suites:", err)
		return 1
	}
	code := m.Run()
	if err := env.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not end well:", err)
		return 1
	}
	return code
}
