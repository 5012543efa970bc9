// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/freehold-dev/freehold/hack/internal/filelock"
	"github.com/freehold-dev/freehold/hack/source"
)

// ProgramsEnv names a directory in which Build and BuildPlugin keep what they have built, for all processes that are given the same one:
// those of one run of the suites, as whoever names it promises that the checkout stays as it is meanwhile. Without it each builds its own.
const ProgramsEnv = "FREEHOLD_PROGRAMS"

// Versions that cannot be taken for a release: that of a build of the checkout, and that of an earlier commit. An operator's requests
// name it in their User-Agent.
const (
	Version        = "v0.0.0-local"
	EarlierVersion = "v0.0.0-earlier"
)

// versionFlag is the linker's flag that sets the version.
const versionFlag = "-X k8s.io/component-base/version.gitVersion="

// Build compiles the operator from the checkout that this module belongs to, as its image is built, and writes it
// to the path, or a link to it, see ProgramsEnv. Nothing may be at the path. Further arguments are passed to go build.
func Build(ctx context.Context, path string, args ...string) error {
	return build(ctx, path, "freehold", args)
}

// BuildPlugin does the same for kubectl freehold.
func BuildPlugin(ctx context.Context, path string) error {
	return build(ctx, path, "kubectl-freehold", nil)
}

func build(ctx context.Context, path, program string, args []string) error {
	root, err := source.Root(ctx)
	if err != nil {
		return err
	}
	kept := os.Getenv(ProgramsEnv)
	if kept == "" || len(args) > 0 {
		return buildIn(ctx, root, path, program, Version, args)
	}
	return buildOnce(ctx, root, path, program, kept)
}

// buildOnce compiles a program unless that has been done already, and makes path a link to it.
func buildOnce(ctx context.Context, root, path, program, kept string) (err error) {
	if kept, err = filepath.Abs(kept); err != nil {
		return err
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	built := filepath.Join(kept, program)
	lock, err := filelock.Acquire(ctx, built+".lock", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if _, err := os.Stat(built); errors.Is(err, fs.ErrNotExist) {
		draft := built + ".draft" // A build that is broken off leaves nothing that looks like a program.
		if err := buildIn(ctx, root, draft, program, Version, nil); err != nil {
			return err
		}
		if err := os.Rename(draft, built); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return os.Symlink(built, path)
}

// buildIn compiles a program of the checkout with this top directory.
func buildIn(ctx context.Context, root, path, program, version string, args []string) error {
	args = append([]string{
		"build", "-C", root, "-trimpath", "-tags", "fieldsv1string,grpcnotrace", "-ldflags", "-s -w " + versionFlag + version, "-o", path,
	}, append(args, "./cmd/"+program)...)
	command := exec.CommandContext(ctx, "go", args...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", program, err, output)
	}
	return nil
}
