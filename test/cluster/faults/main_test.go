// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults proves that the operator converges, and never overwrites a newer state with an older one, when it crashes,
// loses its lease, its rights or the API server, or when what it reads is old.
package faults

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
