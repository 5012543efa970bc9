// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// stage is a namespace with what the tests of this package check in it.
type stage struct{ *harness.Namespace }

func newStage(t *testing.T, on *harness.Env) *stage {
	t.Helper()
	return &stage{on.Namespace(t)}
}
