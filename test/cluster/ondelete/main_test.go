// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ondelete proves the update strategy OnDelete of backends: the operator replaces their pods itself, one at a time,
// by eviction, within all disruption budgets, and only when the author of the MCPServer allows it.
package ondelete

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
