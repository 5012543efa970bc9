// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Localcluster runs a Kubernetes control plane on this machine, with fake nodes or a real one.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the next one ends the process at once, for a stop that hangs.
	context.AfterFunc(ctx, stop)
	err := newRootCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "localcluster: %v\n", err)
	if ctx.Err() != nil {
		// What the shell reports for a program that an interrupt ended.
		return 130
	}
	return 1
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "localcluster",
		Short: "A Kubernetes control plane on loopback, with fake nodes or a real one",
		Long: `localcluster runs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on this machine.
Pods are scheduled and turn Ready, but no container runs. Everything listens on 127.0.0.1 and is reached with the
kubeconfig that "up" prints. With "up --node=real", which needs Linux and root, kwok makes way for a node with
containerd, kubelet, kube-proxy and CoreDNS in a network of its own, and containers do run.

The programs are built from Go modules when they are needed for the first time, which takes 5 to 15 minutes, and are
kept in the cache. Environment:
  ` + binaries.AssetsEnv + `  a directory with ready-made programs to use instead
  ` + binaries.CacheEnv + `      the cache directory, default "freehold" in the user's cache directory
  ` + binaries.ToolHiveEnv + `   the release of ToolHive whose proxyrunner a real node has: ` + strings.Join(binaries.ToolHiveReleases(), ", "),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(newUpCommand(), newDownCommand(), newStatusCommand(), newKubeconfigCommand(), newBuildCommand())
	return root
}

// addDirFlag adds the flag that says which cluster is meant. The returned function gives its value.
func addDirFlag(command *cobra.Command) func() (string, error) {
	var dir string
	command.Flags().StringVar(&dir, "dir", "",
		`directory of the cluster (default "localcluster" in the cache directory)`)
	return func() (string, error) {
		if dir != "" {
			return filepath.Abs(dir)
		}
		cache, err := binaries.CacheDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(cache, "localcluster"), nil
	}
}

// write prints text for the caller of this program.
func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

func newBuildCommand() *cobra.Command {
	kind, earlier := fakeNode, false
	command := &cobra.Command{
		Use:   "build",
		Short: "Build the programs that are missing, and print where all of them are",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			tools := kind.tools(earlier)
			found, err := binaries.Finder{Progress: command.ErrOrStderr()}.Ensure(command.Context(), tools...)
			if err != nil {
				return err
			}
			var paths strings.Builder
			for _, tool := range tools {
				fmt.Fprintln(&paths, found[tool])
			}
			return write(command.OutOrStdout(), paths.String())
		},
	}
	command.Flags().Var(&kind, "node", "fake, or real for those of a real node as well")
	command.Flags().BoolVar(&earlier, earlierFlag, false, "those of a cluster with earlier controllers as well")
	return command
}
