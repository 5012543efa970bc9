// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the operator costs: the time until the children of many MCPServers exist, the writes
// that it takes and those that it saves, memory and CPU.
//
// Times depend on the machine, so none is judged by itself. The time of the operator is set against a raw applier
// that sends the same bodies, with the same clients, rights and parallelism, in the same run. CPU time is set against
// that of ToolHive's own operator, for the same MCPServers in the same run. The ratios, and the numbers of writes, are
// compared with thresholds.yaml; the program fails when one is missed.
//
// Each measurement has a control plane of its own, so that none works on the garbage of another.
//
// CPU time is user and system time of the operator's process, from before the first MCPServer is made, or from the
// start of the process, until the operator is quiet. Quiet means the same for both operators: all children that it
// makes exist, every MCPServer is Ready, and for five seconds the operator has sent no write and used less than 2 % of
// one CPU. Those seconds are included. The two do not make the same children: ToolHive's operator leaves the
// StatefulSet and two of the three Services to its proxyrunners, whose CPU time is not counted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/controller"
)

// errMissed ends the program with an error when it has measured all and a threshold is missed.
var errMissed = errors.New("thresholds missed")

// settings are the program's flags.
type settings struct {
	servers  int
	rounds   int
	workers  int
	idle     time.Duration
	outage   time.Duration
	timeout  time.Duration
	foreign  int
	toolhive bool
	asJSON   bool
	operator string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	limits, err := readThresholds(thresholdsFile)
	if err != nil {
		return err
	}
	// The informers tell of connections that end when a control plane does, which is no news here.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)

	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not done within %v, see -timeout", s.timeout))
	defer cancel()
	b, err := newBench(ctx, s, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	report, err := b.measure(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	if err := report.judge(limits); err != nil {
		return err
	}
	write := report.table
	if s.asJSON {
		write = report.json
	}
	if err := write(stdout); err != nil {
		return err
	}
	if missed := report.missed(); missed > 0 {
		return fmt.Errorf("%d %w", missed, errMissed)
	}
	return nil
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.servers, "n", 200, "Number of MCPServers.")
	flags.IntVar(&s.rounds, "rounds", 3, "How often the raw applier and the operators are measured, in turn. The medians count.")
	flags.IntVar(&s.workers, "workers", controller.DefaultWorkers, "Parallelism of the operator and of the raw applier.")
	flags.DurationVar(&s.idle, "idle", 2*time.Minute, "How long to watch the operator while nothing happens.")
	flags.DurationVar(&s.outage, "outage", 3*time.Minute, "How long no StatefulSet can be made; whole minutes, at least 2.")
	flags.IntVar(&s.foreign, "foreign", 20000, "Number of objects of others that the operator is restarted beside; 0 leaves that out.")
	flags.BoolVar(&s.toolhive, "toolhive", true, "Measure ToolHive's own operator too, that of "+toolHiveRelease+". The first time takes minutes to build it.")
	flags.DurationVar(&s.timeout, "timeout", time.Hour, "When to give up.")
	flags.BoolVar(&s.asJSON, "json", false, "Write JSON instead of tables.")
	flags.StringVar(&s.operator, "operator", "", "The operator's executable; built from this checkout when empty.")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.servers < 1, s.rounds < 1, s.workers < 1:
		return s, errors.New("-n, -rounds and -workers must be at least 1")
	case s.foreign < 0:
		return s, errors.New("-foreign must not be negative")
	case s.idle <= 0:
		return s, errors.New("-idle must be positive")
	case s.outage < 2*time.Minute, s.outage%time.Minute != 0:
		return s, errors.New("-outage must be whole minutes, at least 2")
	}
	return s, nil
}
