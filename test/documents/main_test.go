// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package, which run one after the other: some commands are about all
// namespaces.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	remove, err := harness.InstallPlugin(context.Background())
	defer remove()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no plugin:", err)
		return 1
	}
	return harness.Suite{Env: &env}.Run(m)
}
