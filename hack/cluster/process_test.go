// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/hack/internal/child"
)

// patience is how long tests wait for what should happen at once.
const patience = 30 * time.Second

// newShell returns a process that runs script, and the channel of its unexpected end.
func newShell(t *testing.T, script string) (*process, chan error) {
	t.Helper()
	unexpected := make(chan error, 1)
	parent := child.NewParent()
	t.Cleanup(parent.Close)
	p := &process{
		name:       "shell",
		path:       "/bin/sh",
		args:       []string{"-c", script},
		logPath:    filepath.Join(t.TempDir(), "log"),
		parent:     parent,
		unexpected: func(err error) { unexpected <- err },
	}
	t.Cleanup(func() {
		if err := p.stop(0); err != nil {
			t.Error(err)
		}
	})
	return p, unexpected
}

func TestEnvironment(t *testing.T) {
	p, _ := newShell(t, `echo "GOGC is $GOGC"; sleep 60`)
	p.env = append(os.Environ(), "GOGC=321")
	mustStart(t, p)
	waitLog(t, p, "GOGC is 321")
}

func mustStart(t *testing.T, p *process) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

// waitLog waits until the process has written text.
func waitLog(t *testing.T, p *process, text string) {
	t.Helper()
	var content []byte
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, patience, true, func(context.Context) (_ bool, err error) {
		content, err = os.ReadFile(p.logPath)
		return strings.Contains(string(content), text), err
	})
	if err != nil {
		t.Fatalf("waiting for %q in the log: %v\n%s", text, err, content)
	}
}

func expectNothing(t *testing.T, unexpected <-chan error) {
	t.Helper()
	select {
	case err := <-unexpected:
		t.Errorf("a wanted end was reported: %v", err)
	default:
	}
}

func TestUnexpectedEndIsReportedWithTheLog(t *testing.T) {
	p, unexpected := newShell(t, `echo listen tcp 127.0.0.1:1: bind: address already in use; exit 3`)
	mustStart(t, p)
	err := <-unexpected
	for _, want := range []string{"shell ended", "exit status 3", "bind: address already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	var exit *exitError
	if !errors.As(err, &exit) || !exit.portTaken() {
		t.Errorf("the taken port is not recognised in %v", err)
	}
	if err := p.stop(patience); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
	if err := p.signal(syscall.SIGCONT); !errors.Is(err, errNotRunning) {
		t.Errorf("signalling what has ended: %v, want %v", err, errNotRunning)
	}
}

func TestStopWaitsForAnOrderlyEnd(t *testing.T) {
	p, unexpected := newShell(t, `trap 'echo orderly; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	mustStart(t, p)
	if p.start() == nil {
		t.Error("it was started twice")
	}
	waitLog(t, p, "ready")
	if err := p.stop(patience); err != nil {
		t.Fatal(err)
	}
	waitLog(t, p, "orderly")
	expectNothing(t, unexpected)
	if p.pid() != 0 {
		t.Error("it still has a process ID")
	}
	mustStart(t, p)
	if p.pid() == 0 {
		t.Error("it has no process ID after another start")
	}
}

func TestStopEndsAFrozenProcessInOrder(t *testing.T) {
	p, _ := newShell(t, `trap 'echo orderly; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	mustStart(t, p)
	waitLog(t, p, "ready")
	if err := p.freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(patience); err != nil {
		t.Fatal(err)
	}
	waitLog(t, p, "orderly")
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	p, unexpected := newShell(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	mustStart(t, p)
	waitLog(t, p, "ready")
	pid := p.pid()
	if err := p.stop(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	expectNothing(t, unexpected)
}

func TestStartOfWhatDoesNotExist(t *testing.T) {
	p, _ := newShell(t, "")
	p.path = filepath.Join(t.TempDir(), "none")
	if err := p.start(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("starting no program: %v", err)
	}
}

func TestTailBeginsWithALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	content := "first\n" + strings.Repeat("x", shownLogBytes/2) + "\n" + strings.Repeat("y", shownLogBytes/2) + "\nlast\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(tail(path)); got != strings.Repeat("y", shownLogBytes/2)+"\nlast\n" {
		t.Errorf("tail is %q", got)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(tail(path)); got != "short\n" {
		t.Errorf("tail is %q", got)
	}
}
