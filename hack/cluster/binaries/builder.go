// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// scratchPrefix marks directories of builds under way. They are made and removed only under the build lock.
const scratchPrefix = ".build-"

// reportInterval is how often a running build reports how far it is.
const reportInterval = 10 * time.Second

// builder builds programs into dir. Its caller holds the build lock of dir.
type builder struct {
	dir      string
	progress io.Writer
}

// all builds the tools one after the other, so that each is kept even if a later one fails.
func (b builder) all(ctx context.Context, tools []Tool) error {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("%v have to be built, which needs the go command in PATH; or set %s to a directory that has them: %w",
			tools, AssetsEnv, err)
	}
	if err := b.removeLeftovers(); err != nil {
		return err
	}
	say(b.progress, "building the programs of the local cluster from Go modules: %s", joinTools(tools))
	say(b.progress, "this is done once and kept in %s", b.dir)
	say(b.progress, "with nothing cached, all of them take 5 to 20 minutes, 800 MB of downloads, 7 GB of Go build cache")
	begin := time.Now()
	for i, tool := range tools {
		if err := b.one(ctx, goCommand, tool, fmt.Sprintf("[%d/%d]", i+1, len(tools))); err != nil {
			return fmt.Errorf("building %s: %w", tool, err)
		}
	}
	say(b.progress, "all built in %s", elapsedSince(begin))
	return nil
}

// one builds tool in a scratch directory and moves it to its place in one step, so that a program in the cache is
// always whole.
func (b builder) one(ctx context.Context, goCommand string, tool Tool, label string) (err error) {
	r, err := recipeFor(tool)
	if err != nil {
		return err
	}
	version, err := r.version()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(b.dir, scratchPrefix)
	if err != nil {
		return fmt.Errorf("making a build directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := r.module.write(scratch); err != nil {
		return err
	}
	output := filepath.Join(scratch, "output")
	if err := os.Mkdir(output, 0o755); err != nil {
		return fmt.Errorf("making the output directory: %w", err)
	}

	status := &buildStatus{begin: time.Now()}
	stopReporting := b.report(label+" "+string(tool)+" "+version, status)
	err = b.goBuild(ctx, goCommand, scratch, r, version, filepath.Join(output, string(tool)), status)
	stopReporting()
	if err != nil {
		return err
	}

	final := filepath.Join(b.dir, r.cacheKey(tool, version))
	// What is there is not the whole program, else it would not be built.
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("replacing the cached program: %w", err)
	}
	if err := os.Rename(output, final); err != nil {
		return fmt.Errorf("keeping the built program: %w", err)
	}
	say(b.progress, "%s %s %s built in %s", label, tool, version, elapsedSince(status.begin))
	return nil
}

func (b builder) goBuild(ctx context.Context, goCommand, dir string, r recipe, version, output string, status *buildStatus) error {
	environment := append(os.Environ(),
		"CGO_ENABLED=0",
		// The programs run here, whatever the caller cross-compiles for.
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		// A workspace around the caller is not about these modules.
		"GOWORK=off",
	)
	environment = append(environment, r.module.env...)
	// The number of packages makes the progress meaningful. It is not worth failing for: the build itself gives
	// the better error.
	list := exec.CommandContext(ctx, goCommand, "list", "-mod=readonly", "-deps", r.pkg)
	list.Dir, list.Env, list.Stderr = dir, environment, status
	if packages, err := list.Output(); err == nil {
		status.setTotal(bytes.Count(packages, []byte("\n")))
	}

	build := exec.CommandContext(ctx, goCommand, r.buildArgs(version, output)...)
	build.Dir, build.Env, build.Stdout, build.Stderr = dir, environment, status, status
	// An interrupt lets the go command remove its work directory, which a kill does not.
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = 5 * time.Second
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("go build: %w\n%s", err, status.messages())
	}
	return nil
}

// report writes a line about status now and then, until the returned function is called.
func (b builder) report(what string, status *buildStatus) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				say(b.progress, "%s: %s", what, status)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// say writes a line of progress. A failure to write it is no reason to end a build.
func say(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, "freehold: "+format+"\n", args...)
}

// removeLeftovers removes what killed builds left.
func (b builder) removeLeftovers() error {
	leftovers, err := filepath.Glob(filepath.Join(b.dir, scratchPrefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return fmt.Errorf("removing the leftovers of a build: %w", err)
		}
	}
	return nil
}

func joinTools(tools []Tool) string {
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = string(tool)
	}
	return strings.Join(names, ", ")
}

func elapsedSince(begin time.Time) time.Duration {
	return time.Since(begin).Round(time.Second)
}
