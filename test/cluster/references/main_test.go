// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references proves that MCPServers run with what they refer to, and with nothing older or less: whatever comes first,
// changes, breaks, goes, or is seen late.
package references

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
