// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package property draws random scenarios of writers who dispute an MCPServer and its children, and holds what the operator
// does against its promises. See TestProperty for the seeds of a failure.
//
// The environment variable FREEHOLD_PROPERTY_CHECKS is how many scenarios TestProperty plays. Default: 12.
package property

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
