// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package input proves what the operator does with MCPServers that it cannot carry out as they are written, and with API
// servers that refuse its children: it reports the reason in a condition and an event, keeps what works, tries again
// with a back-off, and recovers when the cause is gone.
package input

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
