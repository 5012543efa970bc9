// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package input proves what the operator does with what it is given. It reports in a condition and an event what it cannot carry out, keeps
// what works, tries again with a back-off, and recovers when the cause is gone. The specs of MCPServers, the rules of the definitions, and
// API servers that refuse the children are in the files without a prefix. In the others:
//
//   - references: MCPServers run with what they refer to, and with nothing older or less, whatever comes first, changes, breaks, goes, or is
//     seen late.
//   - configs: the operator validates the configurations and groups that MCPServers refer to, holds their deletion while something refers
//     to them, lists members, takes them over from ToolHive's operator, and leaves them to it.
//   - policy: the admission policies that Freehold ships stop users who write under its field managers' names or change its fields. They
//     stop neither the operator nor Kubernetes.
package input

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
