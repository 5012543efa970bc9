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
// StatefulSet and two of the three Services to its proxyrunners, whose CPU time is not counted. Pods do not run here, so the program
// plays the proxyrunners of a release whose operator does not come to rest without them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/test/bench/recording"
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
	// release is the release of ToolHive whose operator the bench measures.
	release  string
	asJSON   bool
	operator string
	// grow are the numbers of MCPServers to measure with, one after the other; it is servers alone without the flag.
	grow   sizes
	record string
	// perNamespace is how many MCPServers a namespace has; 0 for all in one.
	perNamespace int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	program, args := run, os.Args[1:]
	if len(args) > 0 && args[0] == "soak" {
		program, args = runSoak, args[1:]
	}
	err := program(ctx, args, os.Stdout, os.Stderr)
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
	quietLibraries()
	b, err := newBench(ctx, s, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	write := (*report).table
	if s.asJSON {
		write = (*report).json
	}
	missed, err := b.series(ctx, limits, write, stdout)
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d %w", missed, errMissed)
	}
	return err
}

// quietLibraries drops what informers log about connections that end when a control plane does, which is no news here.
func quietLibraries() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.servers, "n", 200, "Number of MCPServers.")
	flags.IntVar(&s.perNamespace, "per-namespace", recording.PerNamespace, "Number of MCPServers in each namespace; 0 for all in one.")
	flags.IntVar(&s.rounds, "rounds", 3, "How often the raw applier and the operators are measured, in turn. The medians count.")
	flags.IntVar(&s.workers, "workers", controller.DefaultWorkers,
		"Parallelism of the operator; the raw applier has as much of it as Freehold has for as many namespaces.")
	flags.DurationVar(&s.idle, "idle", 2*time.Minute, "How long to watch the operator while nothing happens.")
	flags.DurationVar(&s.outage, "outage", 3*time.Minute, "How long no StatefulSet can be made; whole minutes, at least 2, or 0 to leave that out.")
	flags.IntVar(&s.foreign, "foreign", 20000, "Number of objects of others that the operator is restarted beside; 0 leaves that out.")
	flags.BoolVar(&s.toolhive, "toolhive", true, "Measure ToolHive's own operator too. The first time takes minutes to build it.")
	flags.StringVar(&s.release, "toolhive-release", toolHiveRelease,
		"Release of ToolHive to measure. From "+sinceRestarts+" on, the bench plays the proxyrunners, which do not run here.")
	flags.DurationVar(&s.timeout, "timeout", 0, "When to give up, for each number of MCPServers; 0 for an hour and 5 s for each MCPServer.")
	flags.Var(&s.grow, "grow", "Numbers of MCPServers to measure with, one after the other, such as 100,300,1000; in place of -n.")
	flags.StringVar(&s.record, "record", "", "File to write what docs/performance.md shows into.")
	flags.BoolVar(&s.asJSON, "json", false, "Write JSON instead of tables.")
	flags.StringVar(&s.operator, "operator", "", "The operator's executable; built from this checkout when empty.")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if len(s.grow) == 0 {
		s.grow = sizes{s.servers}
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.servers < 1, s.rounds < 1, s.workers < 1:
		return s, errors.New("-n, -rounds and -workers must be at least 1")
	case s.foreign < 0, s.perNamespace < 0:
		return s, errors.New("-foreign and -per-namespace must not be negative")
	case s.idle <= 0, s.timeout < 0:
		return s, errors.New("-idle must be positive, and -timeout not negative")
	case !slices.Contains(binaries.ToolHiveReleases(), s.release):
		return s, fmt.Errorf("-toolhive-release must be one of %v", binaries.ToolHiveReleases())
	case s.outage != 0 && s.outage < 2*time.Minute, s.outage%time.Minute != 0:
		return s, errors.New("-outage must be whole minutes, at least 2, or 0")
	}
	return s, nil
}
