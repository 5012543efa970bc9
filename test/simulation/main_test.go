// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// gcPercent is the GOGC of the simulation, which has memory to spare.
const gcPercent = 400

// TestMain silences what a million histories would print. How they end tells what went wrong, and their steps how.
func TestMain(m *testing.M) {
	flag.Parse()
	// The other handler makes sure that there is a while between two errors. It knows the time of the first from the real
	// clock, and a goroutine in a bubble would wait until the clock of the bubble has come there.
	utilruntime.ErrorHandlers = nil //nolint:reassign // it is there to be set
	klog.SetLogger(logr.Discard())
	// The heap of a history is small, and would be collected all the time.
	debug.SetGCPercent(gcPercent)
	m.Run()
}
