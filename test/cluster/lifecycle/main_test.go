// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle proves what the operator writes in the life of an MCPServer: each child once when it is created, only what
// an edit or a restart changes, nothing while nothing happens, and nothing but the finalizer when it is deleted. A pod of
// a proxy never runs ahead of the configuration that it must read.
//
// The environment variable FREEHOLD_IDLE is how long TestQuiet watches a fleet that has all it needs, as a Go
// duration. Default: 30s. What Freehold promises is 2m.
package lifecycle

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
