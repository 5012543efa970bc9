// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation proves that the simulated cluster of test/simulation is like a real one: what was done in it is done here
// again, and leads to equal objects and owners.
package simulation

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
