// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/operator"
)

// Kubectl is the real kubectl, with all rights, in a Namespace.
type Kubectl struct {
	// dir is where the program is, so that a shell finds it.
	dir string
	// environment of each run: without anything that the user of this machine has set up for kubectl.
	environment []string
}

// Kubectl returns the kubectl of the version that the cluster has. It is built if it is not there.
func (ns *Namespace) Kubectl(t *testing.T) *Kubectl {
	t.Helper()
	path, err := ns.Cluster.KubectlPath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "kubeconfig")
	content, err := os.ReadFile(ns.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &Kubectl{dir: filepath.Dir(path)}
	k.environment = []string{
		"PATH=" + k.dir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + kubeconfig,
	}
	k.Run(t, "config", "set-context", "--current", "--namespace="+ns.Name)
	return k
}

// Environment is what a command line runs in: kubectl on the PATH, and in KUBECONFIG the Namespace.
func (k *Kubectl) Environment() []string { return slices.Clone(k.environment) }

// Call is one run of kubectl.
type Call struct {
	// Args of kubectl.
	Args []string
	// Input for it to read; empty for none.
	Input string
	// Editor is the command that edits a file, see kubectl edit.
	Editor string
}

// Try runs kubectl, again while it says that the API server is overloaded. The error, if any, has what kubectl said.
func (k *Kubectl) Try(ctx context.Context, call Call) (output string, err error) {
	environment := k.environment
	if call.Editor != "" {
		environment = append(slices.Clip(environment), "KUBE_EDITOR="+call.Editor)
	}
	program := filepath.Join(k.dir, "kubectl")
	output, err = run(ctx, environment, call.Input, program, call.Args...)
	for attempt := 1; attempt < attempts && err != nil && strings.Contains(err.Error(), overloaded); attempt++ {
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(pause):
		}
		output, err = run(ctx, environment, call.Input, program, call.Args...)
	}
	return output, err
}

// Do is Try for a run that must succeed.
func (k *Kubectl) Do(t *testing.T, call Call) (output string) {
	t.Helper()
	output, err := k.Try(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// Run runs kubectl with arguments alone, which must succeed.
func (k *Kubectl) Run(t *testing.T, args ...string) (output string) {
	t.Helper()
	return k.Do(t, Call{Args: args})
}

// Shell runs a command line as a user does who has copied it. It must succeed.
func (k *Kubectl) Shell(t *testing.T, line string) (output string) {
	t.Helper()
	output, err := run(t.Context(), k.environment, "", "sh", "-c", line)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func run(ctx context.Context, environment []string, input, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = environment
	var output, complaint bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &output, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(args, " "),
			errors.Join(err, errors.New(strings.TrimSpace(complaint.String()))))
	}
	return output.String(), nil
}

// InstallPlugin builds kubectl freehold and puts it on the PATH of this process, where kubectl finds it.
func InstallPlugin(ctx context.Context) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "freehold-plugin-")
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if err := operator.BuildPlugin(ctx, filepath.Join(dir, "kubectl-freehold")); err != nil {
		return remove, err
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
