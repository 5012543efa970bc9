// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// downTimeout is how long a cluster may take to stop. It takes about three seconds.
const downTimeout = 30 * time.Second

func newDownCommand() *cobra.Command {
	var wipe bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster, wherever it was started",
		Args:  cobra.NoArgs,
	}
	command.Flags().BoolVar(&wipe, "wipe", false, "also remove the directory with all that the cluster holds")
	dir := addDirFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		path, err := dir()
		if err != nil {
			return err
		}
		return down(command.Context(), path, wipe, command.OutOrStdout())
	}
	return command
}

// down stops the cluster in dir. It succeeds if there is none.
func down(ctx context.Context, dir string, wipe bool, out io.Writer) error {
	running, err := cluster.FindRunning(dir)
	switch {
	case err == nil:
		if err := syscall.Kill(running.PID, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stopping process %d: %w", running.PID, err)
		}
		if err := waitStopped(ctx, dir); err != nil {
			return err
		}
		err = write(out, "Stopped.\n")
	case errors.Is(err, cluster.ErrNotRunning):
		err = write(out, "No cluster runs.\n")
	}
	if err != nil {
		return err
	}
	if wipe {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing what the cluster held: %w", err)
		}
	}
	return nil
}

func waitStopped(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		_, err := cluster.FindRunning(dir)
		if errors.Is(err, cluster.ErrNotRunning) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster to stop: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// addFind adds the flag that selects the cluster, and returns a function that finds it while it runs.
func addFind(command *cobra.Command) func() (*cluster.Running, error) {
	dir := addDirFlag(command)
	return func() (*cluster.Running, error) {
		path, err := dir()
		if err != nil {
			return nil, err
		}
		return cluster.FindRunning(path)
	}
}

func newStatusCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "status",
		Short: "Print whether the cluster runs and how to reach it; exit status 1 if it does not",
		Args:  cobra.NoArgs,
	}
	find := addFind(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		running, err := find()
		if err != nil {
			return err
		}
		processes := []string{fmt.Sprintf("localcluster %d", running.PID)}
		for _, component := range slices.Sorted(maps.Keys(running.Components)) {
			processes = append(processes, fmt.Sprintf("%s %d", component, running.Components[component]))
		}
		return write(command.OutOrStdout(), describe(running)+"Processes   "+strings.Join(processes, ", ")+"\n")
	}
	return command
}

func newKubeconfigCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the running cluster's kubeconfig",
		Args:  cobra.NoArgs,
	}
	find := addFind(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		running, err := find()
		if err != nil {
			return err
		}
		return write(command.OutOrStdout(), running.Kubeconfig+"\n")
	}
	return command
}
