// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults proves that the operator converges, and never overwrites a newer state with an older one, when it crashes,
// loses its lease, its rights or the API server, or when what it reads is old. The files with a prefix play histories:
//
//   - property: random scenarios of writers who dispute an MCPServer and its children, held against the operator's promises. See
//     TestProperty for the seeds of a failure.
//   - simulation: what was done in the simulated cluster of test/simulation is done here again, and leads to equal objects and owners. The
//     API server in memory answers single requests as a real one does.
//
// The environment variable FREEHOLD_PROPERTY_CHECKS is how many scenarios TestProperty plays. Default: 12.
package faults

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
