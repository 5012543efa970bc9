// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chainsaw runs ToolHive's own scenarios about MCPServers and what they refer to against Freehold. They are read from ToolHive's
// published Go module; known.yaml says which are left out and what differs on purpose, each with its reason.
package chainsaw

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package, which run one after the other: scenarios name their namespaces.
var env *harness.Env

func TestMain(m *testing.M) {
	os.Exit(harness.Suite{Env: &env, KeepNamespaces: true}.Run(m))
}
