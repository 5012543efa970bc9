// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/source"
)

// EarlierEnv names the commit, tag or branch of this repository that is taken for the last release.
const EarlierEnv = "FREEHOLD_EARLIER"

// earlier is taken for the last release until there is one. It is the first commit that has all kinds that MCPServers refer to.
const earlier = "825f5cffb6fcedac7647f3f96879eb2af0bf8729"

// Release is Freehold as a commit of this repository has it.
type Release struct {
	// Commit is the full hash.
	Commit string
	// Binary is the operator's executable, built as Build does; its version is EarlierVersion.
	Binary string
	// Root has the directory deploy/ of the commit.
	Root string
	// Pinned reports that it is the commit that is taken for the last release unless EarlierEnv says otherwise.
	Pinned bool
}

// NoHistoryError says that the checkout does not have the earlier commit: it is a part of the repository's history, or no
// repository at all.
type NoHistoryError struct{ Reason string }

func (e *NoHistoryError) Error() string {
	return fmt.Sprintf("commit %.12s of this repository, which stands for the last release, is not here: %s; "+
		"fetch the whole history, or name another commit in %s", earlier, e.Reason, EarlierEnv)
}

// Earlier returns the last release: the pinned commit, or what EarlierEnv names. The operator is built the first time and kept outside
// of the checkout, which is said to progress. Where the pinned commit is not in the checkout's history, the error is a *NoHistoryError.
func Earlier(ctx context.Context, progress io.Writer) (*Release, error) {
	root, err := source.Root(ctx)
	if err != nil {
		return nil, err
	}
	name := os.Getenv(EarlierEnv)
	pinned := name == ""
	if pinned {
		name = earlier
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	switch {
	case err != nil && pinned:
		return nil, &NoHistoryError{Reason: strings.TrimSpace(err.Error())}
	case err != nil:
		return nil, fmt.Errorf("%s=%s: %w", EarlierEnv, name, err)
	}
	commit = strings.TrimSpace(commit)
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(cache, "earlier", strings.Join([]string{commit, runtime.GOOS, runtime.GOARCH, runtime.Version()}, "-"))
	release := &Release{Commit: commit, Binary: filepath.Join(kept, "freehold"), Root: kept, Pinned: pinned}
	if _, err := os.Stat(release.Binary); !errors.Is(err, fs.ErrNotExist) {
		return release, err
	}
	began := time.Now()
	if err := buildCommit(ctx, root, commit, kept); err != nil {
		return nil, fmt.Errorf("cannot build the operator of commit %.12s: %w", commit, err)
	}
	_, err = fmt.Fprintf(progress, "freehold: the operator of commit %.12s was built in %v, and is kept in %s\n",
		commit, time.Since(began).Round(time.Second), kept)
	return release, err
}

// buildCommit builds the operator of a commit and keeps it, with the commit's manifests, in a directory. What is there is whole: it is
// made elsewhere and moved there in one step. Another process may have done the same meanwhile.
func buildCommit(ctx context.Context, root, commit, kept string) (err error) {
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(kept), ".build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	checkout, archive, made := filepath.Join(scratch, "checkout"), filepath.Join(scratch, "archive.tar"), filepath.Join(scratch, "made")
	if _, err := git(ctx, root, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return err
	}
	for _, dir := range []string{checkout, made} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if output, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", checkout).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, output)
	}
	if err := buildIn(ctx, checkout, filepath.Join(made, "freehold"), "freehold", EarlierVersion, nil); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(checkout, "deploy"), filepath.Join(made, "deploy")); err != nil {
		return err
	}
	if err := os.Rename(made, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// git runs git in the checkout. The error has what git said.
func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(complaint.Bytes()))
	}
	return string(output), nil
}
