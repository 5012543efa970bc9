// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas proves who decides on the number of pods: the spec where it names one, and otherwise a scaler; but never
// more than one where the transport is stdio. It also proves the warning about sessions that are not shared.
package replicas

import (
	"os"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package.
var env *harness.Env

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &env)) }
