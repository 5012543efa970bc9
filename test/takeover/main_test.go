// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover holds the suites in which ToolHive was there first: its own operator, and its own proxyrunners on
// a real node, make the MCPServers that Freehold then takes over. They share one cluster; each test has a namespace
// of its own.
//
// Where no real node can run, nothing is tested, and the reason is printed. With FREEHOLD_NODE=required that is a
// failure.
package takeover

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the cluster of all tests of this package, and machine is its node.
var (
	env     *harness.Env
	machine *node.Node
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := runAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := node.Check(); err != nil {
		fmt.Println("SKIP: the suites of real pods do not run:", err)
		if os.Getenv("FREEHOLD_NODE") == "required" {
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

// atOnce is how many tests run at a time unless -parallel says otherwise: most of them wait most of the time.
const atOnce = 16

func runAtOnce() error {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

func run(m *testing.M) (code int) {
	err := start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "no node for the suites:", err)
		code = 1
	} else {
		code = m.Run()
		if err := checkWhole(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the cluster did not end well:", err)
		code = 1
	}
	return code
}

func start(ctx context.Context) (err error) {
	began := time.Now()
	if env, err = harness.New(ctx, cluster.Options{AuditBodies: true, RealNodes: true}); err != nil {
		return err
	}
	fmt.Printf("The control plane was ready after %v\n", since(began))

	began = time.Now()
	if machine, err = node.Start(ctx, env.Cluster, node.Options{Images: images.ForMCP()}); err != nil {
		return err
	}
	fmt.Printf("The node was ready, with its images, after %v\n", since(began))
	return nil
}

func stop() error {
	var errs []error
	if machine != nil {
		errs = append(errs, machine.Stop())
	}
	if env != nil {
		errs = append(errs, env.Close())
	}
	return errors.Join(errs...)
}

func since(began time.Time) time.Duration { return time.Since(began).Round(10 * time.Millisecond) }

// upstream runs ToolHive's operator for the namespace until the test ends or it is stopped. Its log is shown when the
// test has failed.
func upstream(t *testing.T, s *harness.Space) *toolhive.Operator {
	t.Helper()
	p, err := toolhive.Start(t.Context(), env.Cluster, toolhive.Options{Dir: t.TempDir(), Namespaces: []string{s.Name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			showEnd(t, p.Log())
		}
	})
	return p
}

// shown is how much of a log is shown, in bytes.
const shown = 16 << 10

func showEnd(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("%s:\n%s", path, text[max(0, len(text)-shown):])
}
