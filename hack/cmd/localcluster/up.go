// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/node"
)

const (
	detachFlag  = "detach"
	earlierFlag = "earlier-controllers"
	// pollInterval is how often a cluster that another process starts or stops is looked at.
	pollInterval = 100 * time.Millisecond
)

func newUpCommand() *cobra.Command {
	var options cluster.Options
	kind := fakeNode
	var detach bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, and stop it with Ctrl-C",
		Long: `up starts the cluster, prints how to reach it and runs until Ctrl-C or SIGTERM.
What the cluster holds stays in its directory for the next start; "down --wipe" removes it.`,
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.IntVar(&options.FakeNodes, "nodes", 1, "number of fake nodes, each with room for 10,000 pods")
	flags.Var(&kind, "node", "fake, or real for one that runs containers (Linux and root only)")
	flags.BoolVar(&options.NoFakePods, "no-fake-pods", false, "no kwok and no fake nodes: pods stay Pending")
	flags.BoolVar(&options.APIServerOnly, "api-server-only", false, "only etcd and kube-apiserver: nothing happens to what is written")
	flags.DurationVar(&options.PodReadyDelay, "pod-ready-delay", 0, "how long fake pods take to be Ready once scheduled")
	flags.StringVar(&options.Controllers, "controllers", "*", "as the flag of kube-controller-manager")
	flags.BoolVar(&options.EarlierControllers, earlierFlag, false, "controllers of the minor version of Kubernetes before that of the API server")
	flags.StringArrayVar(&options.APIServerArgs, "api-server-arg", nil, "one more flag for kube-apiserver, like --v=4; may be repeated")
	flags.BoolVar(&options.AuditBodies, "audit-bodies", false, "record the bodies of all writes in the audit log")
	flags.BoolVar(&detach, detachFlag, false, "return when the cluster is usable and leave it running")
	dir := addDirFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		path, err := dir()
		if err != nil {
			return err
		}
		options.Dir = path
		options.Progress = command.ErrOrStderr()
		if options.RealNodes = kind == realNode; options.RealNodes {
			if err := node.Check(); err != nil {
				return err
			}
		}
		if detach {
			return upDetached(command.Context(), path, kind, options.EarlierControllers, command.OutOrStdout(), command.ErrOrStderr())
		}
		return up(command.Context(), options, command.OutOrStdout())
	}
	return command
}

// up runs a cluster until ctx ends.
func up(ctx context.Context, options cluster.Options, out io.Writer) error {
	if err := write(out, "Starting a local Kubernetes cluster ...\n"); err != nil {
		return err
	}
	begin := time.Now()
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return err
	}
	n, err := startNode(ctx, c, options)
	var running *cluster.Running
	if err == nil {
		running, err = cluster.FindRunning(c.Dir())
	}
	if err == nil {
		took := time.Since(begin).Round(100 * time.Millisecond)
		err = write(out, fmt.Sprintf("Usable after %s.\n%s\nCtrl-C stops it.\n", took, describe(running)))
	}
	if err == nil {
		err = errors.Join(wait(ctx, c, n), write(out, "\nStopping ...\n"))
	}
	if n != nil {
		err = errors.Join(err, n.Stop())
	}
	return errors.Join(err, c.Stop())
}

// describe says how a cluster is reached.
func describe(running *cluster.Running) string {
	return fmt.Sprintf(`
  export KUBECONFIG=%s

API server  %s
Audit log   %s
Logs        %s
`, running.Kubeconfig, running.Server, running.AuditLog, filepath.Join(filepath.Dir(running.Kubeconfig), "log"))
}

// upDetached runs "up" in a process of its own and returns when its cluster is usable.
func upDetached(ctx context.Context, dir string, kind nodeKind, earlier bool, out, progress io.Writer) (err error) {
	running, err := cluster.FindRunning(dir)
	if err == nil {
		return write(out, "The cluster runs already.\n"+describe(running))
	}
	// Whoever waits for the first build wants to see how far it is, so it is not for the other process to do.
	if _, err := (binaries.Finder{Progress: progress}).Ensure(ctx, kind.tools(earlier)...); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of the cluster: %w", err)
	}
	logPath := filepath.Join(dir, "localcluster.log")
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("making the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	// The last one of a flag wins.
	arguments := append(slices.Clone(os.Args[1:]), "--"+detachFlag+"=false")
	child := exec.Command(self, arguments...) //nolint:noctx // it is to outlive this process
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		running, err := cluster.FindRunning(dir)
		if err == nil && (kind == fakeNode || node.IsReady(dir, running.PID)) {
			return write(out, describe(running)+"\n\"localcluster down\" stops it.\n")
		}
		select {
		case err := <-ended:
			content, readErr := os.ReadFile(logPath)
			return errors.Join(fmt.Errorf("the cluster did not start: %w\n%s", err, content), readErr)
		case <-ctx.Done():
			// The other process is not part of this terminal's group, so the interrupt has to be passed on.
			return errors.Join(context.Cause(ctx), child.Process.Signal(syscall.SIGTERM), <-ended)
		case <-ticker.C:
		}
	}
}
