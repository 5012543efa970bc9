// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover proves how the operator takes MCPServers over from ToolHive, whose objects are restored from recordings:
// without a restart that is not needed, at a limited pace, only where it may, and also when it crashes half-way.
package takeover

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
