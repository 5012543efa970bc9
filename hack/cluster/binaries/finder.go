// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/freehold-dev/freehold/hack/internal/filelock"
)

const (
	// AssetsEnv names the variable with a directory of ready-made programs, as kubebuilder defined it.
	AssetsEnv = "KUBEBUILDER_ASSETS"
	// CacheEnv names the variable with the cache directory.
	CacheEnv = "FREEHOLD_CACHE"
)

// Finder finds or builds programs. The zero value takes everything from the environment and reports to stderr.
type Finder struct {
	// AssetsDir is a directory of ready-made programs. Default: $KUBEBUILDER_ASSETS. Programs of another
	// version than the pinned ones are used as they are: the user who sets it must make sure that they fit together.
	AssetsDir string
	// CacheDir is where programs are kept. Default: CacheDir().
	CacheDir string
	// Progress gets a line about what is built, and one for each program that is a substituted build. Nothing else is
	// written when nothing has to be built. Default: os.Stderr.
	Progress io.Writer
	// Published takes programs that others have built before any is built here, for a user who is waiting: a kubectl on the PATH whose
	// version fits, and what Kubernetes publishes of the pinned version, where a server answers. Suites build all of them.
	Published bool

	// from is where published programs come from. Default: their authors.
	from *published
}

// CacheDir returns the directory for everything that is worth keeping between runs: $FREEHOLD_CACHE, else
// "freehold" in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the programs of the local cluster, set %s: %w", CacheEnv, err)
	}
	return filepath.Join(dir, "freehold"), nil
}

// Ensure returns the path of each given program, after building those that were not found. It stops building when
// ctx ends.
func (f Finder) Ensure(ctx context.Context, tools ...Tool) (map[Tool]string, error) {
	if f.AssetsDir == "" {
		f.AssetsDir = os.Getenv(AssetsEnv)
	}
	if f.Progress == nil {
		f.Progress = os.Stderr
	}
	if f.CacheDir == "" {
		dir, err := CacheDir()
		if err != nil {
			return nil, err
		}
		f.CacheDir = dir
	}
	if f.from == nil {
		authors := f.published()
		f.from = &authors
	}

	if err := sayNotes(f.Progress, tools); err != nil {
		return nil, err
	}
	found := make(map[Tool]string, len(tools))
	missing, err := f.find(ctx, tools, found)
	if err != nil || len(missing) == 0 {
		return found, err
	}

	binDir := filepath.Join(f.CacheDir, "bin")
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(binDir, "build.lock"), func() {
		say(f.Progress, "another process is building the programs of the local cluster, waiting for it")
	})
	if err != nil {
		return nil, err
	}
	build := builder{dir: binDir, progress: f.Progress}
	// The process that held the lock may have built what is missing here.
	missing, err = f.find(ctx, missing, found)
	if err == nil && len(missing) > 0 && f.Published {
		f.from.fetch(ctx, missing)
		missing, err = f.find(ctx, missing, found)
	}
	if err == nil && len(missing) > 0 {
		err = build.all(ctx, missing)
	}
	if err == nil {
		missing, err = f.find(ctx, missing, found)
	}
	if err := errors.Join(err, lock.Release()); err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("built %v but did not find them in %s", missing, binDir)
	}
	return found, nil
}

// sayNotes says of each program that is not the one that its authors publish in which way it is not.
func sayNotes(progress io.Writer, tools []Tool) error {
	for _, tool := range tools {
		r, err := recipeFor(tool)
		if err != nil {
			return err
		}
		if r.module.note == "" {
			continue
		}
		version, err := r.version()
		if err != nil {
			return err
		}
		say(progress, "%s %s is %s", tool, version, r.module.note)
	}
	return nil
}

// find adds to found the path of each tool that exists and returns the others.
func (f Finder) find(ctx context.Context, tools []Tool, found map[Tool]string) (missing []Tool, err error) {
	for _, tool := range tools {
		path, err := f.own(tool)
		if err == nil && path == "" && f.Published {
			path, err = f.from.find(ctx, tool)
		}
		if err != nil {
			return nil, err
		}
		if path == "" {
			missing = append(missing, tool)
			continue
		}
		found[tool] = path
	}
	return missing, nil
}

// own returns the path of a tool that the user has named or that was built here, or "" if there is none.
func (f Finder) own(tool Tool) (string, error) {
	candidates := make([]string, 0, 2)
	if f.AssetsDir != "" {
		candidates = append(candidates, filepath.Join(f.AssetsDir, string(tool)))
	}
	cached, err := cachedPath(filepath.Join(f.CacheDir, "bin"), tool)
	if err != nil {
		return "", err
	}
	return firstExecutable(append(candidates, cached))
}

func cachedPath(binDir string, tool Tool) (string, error) {
	r, err := recipeFor(tool)
	if err != nil {
		return "", err
	}
	version, err := r.version()
	if err != nil {
		return "", err
	}
	return filepath.Join(binDir, r.cacheKey(tool, version), string(tool)), nil
}

// firstExecutable returns the first path that is an executable file, or "" if none is.
func firstExecutable(paths []string) (string, error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("looking for a program: %w", err)
		}
		if info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return filepath.Abs(path)
		}
	}
	return "", nil
}
