// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

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
func start(t *testing.T, ns *harness.Namespace, binary string, args ...string) *harness.Program {
	t.Helper()
	args = append([]string{"--kubeconfig=" + ns.Cluster.Kubeconfig(), "--namespace=" + ns.Name}, args...)
	return harness.StartProgram(t, exec.Command(binary, args...)) //nolint:noctx // It ends by a signal.
}

// interrupt asks a program to end, and fails the test when it does not end well.
func interrupt(t *testing.T, p *harness.Program) {
	t.Helper()
	if err := p.Interrupt(t, syscall.SIGTERM); err != nil {
		t.Fatalf("the program did not end well: %v", err)
	}
}
