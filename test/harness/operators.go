// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/hack/operator"
)

// Operator runs the operator, with the rights of its ServiceAccount, until the test ends, and fails the test when the
// operator does not end well. Its log is shown when the test has failed.
//
// Two operators at work in one namespace refuse each other nothing but get in each other's way. So a parallel test
// names the namespaces to watch, see Namespace.Operate; one that does not must run alone.
func (e *Env) Operator(t *testing.T, args ...string) *operator.Process {
	t.Helper()
	p, _ := e.Logged(t, args...)
	return p
}

// Logged is Operator with what reads the log, as far as it has been written. The verbosity is 4.
func (e *Env) Logged(t *testing.T, args ...string) (*operator.Process, func() string) {
	t.Helper()
	return e.logged(t, e.binary, args)
}

// OtherOperator is Logged for the operator of another release, of which this is the program.
func (e *Env) OtherOperator(t *testing.T, binary string, args ...string) (*operator.Process, func() string) {
	t.Helper()
	return e.logged(t, binary, args)
}

func (e *Env) logged(t *testing.T, binary string, args []string) (*operator.Process, func() string) {
	t.Helper()
	p, log := e.launch(t, binary, args)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("the operator did not end well: %v", err)
		}
	})
	return p, func() string { return readLog(t, log) }
}

// CrashableOperator is an operator that may crash or exit by itself. The test judges how it ends.
type CrashableOperator struct {
	*operator.Process
}

// CrashableOperator runs the operator like Env.Operator, but does not fail the test when the operator ends badly. The
// operator is killed when the test ends.
func (e *Env) CrashableOperator(t *testing.T, args ...string) *CrashableOperator {
	t.Helper()
	p, _ := e.launch(t, e.binary, args)
	t.Cleanup(func() { _ = p.Kill() }) // Most have ended already.
	return &CrashableOperator{p}
}

// portAttempts is how often an operator is started when somebody else has taken the port that was chosen for it.
const portAttempts = 3

// launch starts an operator. After the test, and after what is to be cleaned up later, its log is looked at.
func (e *Env) launch(t *testing.T, binary string, args []string) (*operator.Process, *os.File) {
	t.Helper()
	log, err := os.CreateTemp(e.dir, "freehold-*.log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkLog(t, log)
		_ = log.Close()
	})
	run := newRun(args)
	options := operator.Options{
		Binary: binary, Kubeconfig: e.kubeconfig, Log: log, Args: append([]string{"-v=4"}, args...),
	}
	for attempt := 1; ; attempt++ {
		p, err := operator.Start(t.Context(), options)
		if err == nil {
			e.records.addRun(run)
			return p, log
		}
		if text := readLog(t, log); attempt == portAttempts || !strings.Contains(text, "address already in use") {
			t.Fatal(err)
		}
		e.records.addRun(run) // It may have begun to read before it found out.
	}
}

// logShown is how much of an operator's log a failed test shows, in bytes.
const logShown = 16 << 10

// checkLog fails the test when the operator has panicked, recovered from it or not, and shows the end of the log when
// the test has failed.
func checkLog(t *testing.T, log *os.File) {
	t.Helper()
	text := readLog(t, log)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "panic:") || strings.Contains(line, "Observed a panic") || strings.HasPrefix(line, "fatal error:") {
			t.Errorf("the operator has panicked: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("the operator's log:\n%s", text[max(0, len(text)-logShown):])
	}
}

func readLog(t *testing.T, log *os.File) string {
	t.Helper()
	text, err := os.ReadFile(log.Name())
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
