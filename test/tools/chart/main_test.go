// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart holds the suite of deploy/chart: what Helm 4 renders of it, and what it does with it in a cluster.
package chart

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of the tests that need one. Nothing is installed there.
var env *harness.Env

func TestMain(m *testing.M) {
	os.Exit(harness.Suite{Env: &env, Bare: true, Options: cluster.Options{AuditBodies: true}}.Run(m))
}
