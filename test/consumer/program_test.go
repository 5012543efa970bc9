// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/test/harness"
)

// program is an example that runs as a process.
type program struct {
	command *exec.Cmd
	output  *output
	ended   chan struct{}
	err     error
}

// output is what a program has said so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// build builds an example in its own module and with the flags that a stranger would use: none.
func build(t *testing.T, example string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), example)
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	command.Dir = filepath.Join("..", "..", "examples", example)
	// Not of a workspace that happens to be around.
	command.Env = append(os.Environ(), "GOWORK=off")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("examples/%s does not build: %v\n%s", example, err, text)
	}
	return binary
}

// start runs an example in the namespace until the test ends or it is interrupted.
func start(t *testing.T, space *harness.Space, binary string, args ...string) *program {
	t.Helper()
	args = append([]string{"--kubeconfig=" + space.Cluster.Kubeconfig(), "--namespace=" + space.Name}, args...)
	p := &program{output: &output{}, ended: make(chan struct{}), command: exec.Command(binary, args...)} //nolint:noctx // It ends by a signal.
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // Most have ended already.
		<-p.ended
		if t.Failed() {
			t.Logf("%s has said:\n%s", filepath.Base(binary), p.output)
		}
	})
	return p
}

// await waits until the program has said something, and fails the test when it ends before.
func (p *program) await(t *testing.T, text string) {
	t.Helper()
	harness.Eventually(t, "the program says "+text, func(context.Context) error {
		if strings.Contains(p.output.String(), text) {
			return nil
		}
		select {
		case <-p.ended:
			t.Fatalf("the program has ended: %v\n%s", p.err, p.output)
		default:
		}
		return fmt.Errorf("not yet, only %q", p.output)
	})
}

// interrupt asks the program to end, and fails the test when it does not end well.
func (p *program) interrupt(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(harness.Timeout):
		t.Fatal("the program does not end")
	}
	if p.err != nil {
		t.Fatalf("the program did not end well: %v", p.err)
	}
}
