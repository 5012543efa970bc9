// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configs proves what the operator does with the configurations and groups that MCPServers refer to: it validates them, holds
// their deletion while something refers to them, lists members, takes them over from ToolHive's operator, and leaves them to it.
package configs

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
