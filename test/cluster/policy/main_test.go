// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy proves the admission policies that Freehold ships: they stop those who write under its field managers'
// names or change its fields, and they stop neither the operator nor Kubernetes.
package policy

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
