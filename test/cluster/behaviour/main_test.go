// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package behaviour proves what the operator writes to the children of MCPServers, and what it leaves to others:
//
//   - lifecycle: it writes each child once when it is created, only what an edit or a restart changes, nothing while nothing happens, and
//     nothing but the finalizer when it is deleted. A pod of a proxy never runs ahead of the configuration that it must read.
//   - conflicts: another field manager wants a different value. The operator forces nothing, reports the conflict once, and goes on with
//     everything else. The other writers are kubectl, autoscalers, appliers and co-authors of the MCPServer and of its status.
//   - drift: it creates deleted children and removed fields anew, regains claims that were lost with managedFields, and leaves alone what
//     belongs to others, even where their objects have the names of its children.
//   - replicas: the spec decides on the number of pods where it names one, and otherwise a scaler; but never more than one where the
//     transport is stdio. A warning reports sessions that are not shared.
//   - ondelete: it replaces the pods of backends with the update strategy OnDelete itself, one at a time, by eviction, within all disruption
//     budgets, and only when the author of the MCPServer allows it.
//
// The files of each begin with its name.
//
// The environment variable FREEHOLD_IDLE is how long TestNothingIsWrittenWhenNothingHappens watches a fleet that has all
// it needs, as a Go duration. Default: 30s. What Freehold promises is 2m.
package behaviour

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
