// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overrides proves that all that a user may set beyond the plain fields of an MCPServer reaches the children: the pod
// template and the metadata of resourceOverrides, field by field and all at once.
package overrides

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

// TestMain runs all controllers: those that write the endpoints of Services read labels that users may set.
func TestMain(m *testing.M) {
	os.Exit(harness.MainWith(m, &env, cluster.Options{AuditBodies: true, Controllers: "*"}))
}
