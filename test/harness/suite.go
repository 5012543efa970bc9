// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
)

// shownViolations is how many violations of the invariants are shown in full.
const shownViolations = 20

// Suite is the tests of a package, which share one cluster.
type Suite struct {
	// Options are those of the cluster. After the last test, everything that operators asked the API server for is held
	// against the invariants, see Violations; not without AuditBodies.
	Options cluster.Options
	// Bare leaves the installation of Freehold to the tests, see NewBare.
	Bare bool
	// Env is where the tests find the cluster.
	Env **Env
	// KeepNamespaces leaves the namespaces of tests as they are. They end with the cluster, and to empty them before costs as much as
	// a fifth of all that the API server does: controllers go on to make pods in a namespace that is being deleted.
	KeepNamespaces bool
	// Node is where they find its real node, with the images of MCP servers. Without it there is none.
	Node **node.Node
	// Check looks at the whole after the last test; nil looks at nothing more.
	Check func() error
}

// testsPerProcessor is how many tests run at a time for each processor: they wait part of the time.
const testsPerProcessor = 2

// Main runs a package of test/cluster: its tests share one control plane, which they find in env. Each test has a namespace
// of its own, and operators that watch that namespace alone. After the last test, everything that the operators asked the
// API server for is held against the invariants, see Invariants. With the flag -update-numbers, what the tests counted is
// written into test/README.md.
func Main(m *testing.M, env **Env) (code int) {
	return MainWith(m, env, cluster.Options{AuditBodies: true})
}

// MainWith is Main with a control plane that has these options.
func MainWith(m *testing.M, env **Env, options cluster.Options) (code int) {
	updateNumbers := flag.Bool("update-numbers", false, "write the numbers of this run into test/README.md")
	flag.Parse()
	AtOnce(testsPerProcessor * runtime.GOMAXPROCS(0))
	code = Suite{Env: env, Options: options, KeepNamespaces: true}.Run(m)
	if *updateNumbers && code == 0 {
		if err := (*env).Numbers.Publish(filepath.Join("..", "..", "README.md")); err != nil {
			fmt.Fprintln(os.Stderr, "the numbers are not written:", err)
			return 1
		}
	}
	return code
}

// Run runs the tests and returns the exit code of the program. Where there has to be a real node and none can run,
// nothing is tested, and the reason is printed; with the environment variable FREEHOLD_NODE=required that is a failure.
func (s Suite) Run(m *testing.M) (code int) {
	if s.Node != nil {
		if err := node.Check(); err != nil {
			fmt.Println("SKIP: the suites of real pods do not run:", err) // hack/tools/testreport looks for such a line.
			if os.Getenv("FREEHOLD_NODE") == "required" {
				return 1
			}
			return 0
		}
	}
	ctx := context.Background()
	if err := s.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "no cluster for the suite:", err)
		code = 1
	} else {
		code = m.Run()
		if err := s.check(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL:", err)
			code = 1
		}
	}
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the cluster did not end well:", err)
		code = 1
	}
	return code
}

func (s Suite) start(ctx context.Context) (err error) {
	began := time.Now()
	begin := New
	if s.Bare {
		begin = NewBare
	}
	if *s.Env, err = begin(ctx, s.Options); err != nil {
		return err
	}
	(*s.Env).keepNamespaces = s.KeepNamespaces
	fmt.Printf("The control plane was ready after %v\n", Since(began))
	if s.Node == nil {
		return nil
	}
	began = time.Now()
	if *s.Node, err = node.Start(ctx, (*s.Env).Cluster, node.Options{Images: images.ForMCP()}); err != nil {
		return err
	}
	fmt.Printf("The node was ready, with its images, after %v\n", Since(began))
	return nil
}

func (s Suite) check(ctx context.Context) error {
	var errs []error
	if s.Options.AuditBodies {
		errs = append(errs, (*s.Env).checkInvariants(ctx))
	}
	if s.Check != nil {
		errs = append(errs, s.Check())
	}
	return errors.Join(errs...)
}

// checkInvariants judges all requests of all operators.
func (e *Env) checkInvariants(ctx context.Context) error {
	began := time.Now()
	violations, requests, err := e.Violations(ctx)
	if err != nil {
		return fmt.Errorf("the invariants cannot be checked: %w", err)
	}
	fmt.Printf("Invariants: looked at %d requests of operators in %v, %d violations\n", requests, Since(began), len(violations))
	for i, v := range violations {
		if i == shownViolations {
			fmt.Printf("... and %d more\n", len(violations)-i)
			break
		}
		fmt.Println(v)
	}
	e.Numbers.addRequests(requests)
	if len(violations) > 0 {
		return fmt.Errorf("%d requests of operators should not have been", len(violations))
	}
	return nil
}

func (s Suite) stop() error {
	var errs []error
	if s.Node != nil && *s.Node != nil {
		errs = append(errs, (*s.Node).Stop())
	}
	if *s.Env != nil {
		errs = append(errs, (*s.Env).Close())
	}
	return errors.Join(errs...)
}

// Since is how long ago something began, in hundredths of a second.
func Since(began time.Time) time.Duration { return time.Since(began).Round(10 * time.Millisecond) }

// AtOnce sets how many tests run at a time, unless -parallel has said. The flags have to be parsed.
func AtOnce(count int) {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(count)); err != nil {
		panic(fmt.Sprintf("the testing package has no flag for it any more: %v", err))
	}
}
