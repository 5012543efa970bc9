// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// program is the built localcluster, with a directory for its cluster.
type program struct {
	path, dir string
}

func build(t *testing.T) program {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real processes, which -short leaves out")
	}
	p := program{path: filepath.Join(t.TempDir(), "localcluster"), dir: filepath.Join(t.TempDir(), "cluster")}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, output)
	}
	return p
}

// command is the program with the given arguments. Its progress is shown, for it may build a whole control plane.
func (p program) command(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.path, append(arguments, "--dir="+p.dir)...)
	command.Stderr = os.Stderr
	return command
}

// run returns what the program prints.
func (p program) run(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := p.command(t.Context(), arguments...).Output()
	if err != nil {
		t.Fatalf("localcluster %s: %v", strings.Join(arguments, " "), err)
	}
	return string(output)
}

func TestDetachedCluster(t *testing.T) {
	p := build(t)
	t.Cleanup(func() {
		// Not with the context of the test, which has ended by now.
		if err := p.command(context.WithoutCancel(t.Context()), "down", "--wipe").Run(); err != nil {
			t.Error(err)
		}
	})
	var exit *exec.ExitError
	if err := p.command(t.Context(), "status").Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("status without a cluster: %v, want exit status 1", err)
	}
	const api = "--api-server-only"
	if got := p.run(t, "up", "--detach=1", api); !strings.Contains(got, "export KUBECONFIG=") {
		t.Errorf("up prints\n%s", got)
	}
	if got := p.run(t, "up", "--detach", api); !strings.Contains(got, "runs already") {
		t.Errorf("up prints for a running cluster\n%s", got)
	}
	if got := p.run(t, "status"); !strings.Contains(got, "etcd") || !strings.Contains(got, "kube-apiserver") {
		t.Errorf("status prints\n%s", got)
	}

	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(p.run(t, "kubeconfig")))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := client.Discovery().ServerVersion(); err != nil || version.GitVersion == "" {
		t.Errorf("version of the API server: %v, %v", version, err)
	}

	p.run(t, "down")
	if _, err := cluster.FindRunning(p.dir); !errors.Is(err, cluster.ErrNotRunning) {
		t.Errorf("after down: %v, want %v", err, cluster.ErrNotRunning)
	}
	if got := p.run(t, "down", "--wipe"); got != "No cluster runs.\n" {
		t.Errorf("down without a cluster prints %q", got)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory after down --wipe: %v", err)
	}
}

func TestForegroundClusterEndsWithAnInterrupt(t *testing.T) {
	p := build(t)
	command := p.command(t.Context(), "up", "--api-server-only")
	output := &notifier{text: "Ctrl-C stops it", seen: make(chan struct{})}
	command.Stdout = output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-output.seen:
	case err := <-ended:
		t.Fatalf("up ended: %v\n%s", err, output.content.String())
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("up ended: %v\n%s", err, output.content.String())
	}
	if _, err := cluster.FindRunning(p.dir); !errors.Is(err, cluster.ErrNotRunning) {
		t.Errorf("after the interrupt: %v, want %v", err, cluster.ErrNotRunning)
	}
}

// notifier takes output and tells when it has text.
type notifier struct {
	text    string
	content bytes.Buffer
	seen    chan struct{}
}

func (n *notifier) Write(output []byte) (int, error) {
	before := strings.Contains(n.content.String(), n.text)
	n.content.Write(output)
	if !before && strings.Contains(n.content.String(), n.text) {
		close(n.seen)
	}
	return len(output), nil
}
