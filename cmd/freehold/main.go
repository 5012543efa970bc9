// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command freehold is the operator.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the log format json
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// Go ends the process at a second signal, as it does without a handler.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout)
	stop()
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "freehold:", err)
		os.Exit(1)
	}
}

// run is main with everything that a process has as arguments. It returns nil when the context has ended and
// the operator has come to rest.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdout io.Writer) error {
	o, logging := newOptions(env), logsapi.NewLoggingConfiguration()
	flags, showVersion := newFlags(o, logging)
	flags.SetOutput(stdout)
	flags.Usage = func() {
		fmt.Fprintf(stdout, "Freehold is a Kubernetes operator for ToolHive MCPServers.\n\nUsage:\n  freehold [flags]\n\nFlags:\n%s",
			flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if *showVersion {
		fmt.Fprintln(stdout, version.Get().GitVersion)
		return nil
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see freehold --help", flags.Arg(0))
	}
	if err := o.validate(); err != nil {
		return err
	}
	gate := featuregate.NewFeatureGate()
	if err := logsapi.AddFeatureGates(gate); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(logging, gate); err != nil {
		return err
	}
	logger := klog.Background()
	logger.Info("Starting Freehold", "version", version.Get().GitVersion, "runnerImage", o.rendering.RunnerImage)
	return operate(klog.NewContext(ctx, logger), o)
}

// newFlags returns all flags of the operator: those of its options, those of logs, and --version, which it also returns by itself.
func newFlags(o *options, logging *logsapi.LoggingConfiguration) (flags *pflag.FlagSet, showVersion *bool) {
	flags = pflag.NewFlagSet("freehold", pflag.ContinueOnError)
	flags.SortFlags = false
	o.addFlags(flags)
	logsapi.AddFlags(logging, flags)
	showVersion = flags.Bool("version", false, "Print the version and exit.")
	return flags, showVersion
}
