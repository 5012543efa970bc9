// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conflicts proves what happens when another field manager wants a different value: the operator forces nothing,
// reports the conflict once, and goes on with everything else. The other writers are kubectl, autoscalers, appliers and
// co-authors of the MCPServer and of its status.
package conflicts

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
