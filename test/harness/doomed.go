// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/hack/operator"
)

// Doomed is an operator that a test lets crash, or come to its end by itself. How it ends is the test's to judge.
type Doomed struct {
	*operator.Process
	log *os.File
}

// Doomed runs the operator like Env.Operator, but for how it ends. It does not outlive the test.
func (e *Env) Doomed(t *testing.T, args ...string) *Doomed {
	t.Helper()
	log, err := os.CreateTemp(e.dir, "freehold-*.log")
	if err != nil {
		t.Fatal(err)
	}
	run := newRun(args)
	p, err := operator.Start(t.Context(), operator.Options{
		Binary: e.binary, Kubeconfig: e.kubeconfig, Log: log, Args: append([]string{"-v=4"}, args...),
	})
	if err != nil {
		showLog(t, log)
		t.Fatal(err)
	}
	e.records.addRun(run)
	d := &Doomed{Process: p, log: log}
	t.Cleanup(func() {
		_ = p.Kill() // Most have ended already.
		d.checkLog(t)
		if t.Failed() {
			showLog(t, log)
		}
		_ = log.Close()
	})
	return d
}

// checkLog fails the test when the operator has panicked, recovered from it or not.
func (d *Doomed) checkLog(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(d.log.Name())
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "panic:") || strings.Contains(line, "Observed a panic") || strings.HasPrefix(line, "fatal error:") {
			t.Errorf("the operator has panicked: %s", line)
		}
	}
}
