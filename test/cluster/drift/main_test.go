// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift proves that the operator repairs what others do to its children: it creates deleted children and removed
// fields anew, regains claims that were lost with managedFields, and leaves alone what belongs to others, even where
// their objects have the names of its children.
package drift

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
