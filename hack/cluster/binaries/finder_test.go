// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeGo stands in for the go command: it notes each build in the file builds beside it and writes a program that
// says which package it was made from. A build of a package whose name is in FAKE_GO_FAIL fails.
const fakeGo = `#!/bin/sh
case $1 in
list) printf 'one\ntwo\nthree\n' ;;
build)
  while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then output=$2; fi
    shift
  done
  test -s go.mod && test -s go.sum || { echo "no build module" >&2; exit 1; }
  echo "$1" >>"$(dirname "$0")/builds"
  echo one >&2
  if [ -n "$FAKE_GO_FAIL" ] && [ "${1%%"$FAKE_GO_FAIL"}" != "$1" ]; then
    echo "main.go:1:1: does not compile" >&2
    exit 1
  fi
  echo "$1" >"$output"
  chmod +x "$output"
  ;;
esac
`

// newFinder returns a finder with an empty cache that builds with fakeGo, and a function that returns the packages
// built so far.
func newFinder(t *testing.T) (finder Finder, progress *bytes.Buffer, builds func() []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(AssetsEnv, "")
	progress = &bytes.Buffer{}
	finder = Finder{CacheDir: t.TempDir(), Progress: progress}
	return finder, progress, func() []string {
		content, err := os.ReadFile(filepath.Join(dir, "builds"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Fields(string(content))
	}
}

func TestEnsureBuildsOnceAndThenIsQuiet(t *testing.T) {
	finder, progress, builds := newFinder(t)
	for range 2 {
		found, err := finder.Ensure(t.Context(), Etcd, Kubectl)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(found[Kubectl])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(content), "k8s.io/kubernetes/cmd/kubectl\n"; got != want {
			t.Errorf("kubectl was built from %q, want %q", got, want)
		}
	}
	if got := builds(); len(got) != 2 {
		t.Errorf("built %v, want etcd and kubectl once", got)
	}
	for _, want := range []string{"etcd, kubectl", "[1/2] etcd v", "[2/2] kubectl v"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress does not tell %q:\n%s", want, progress)
		}
	}
	progress.Reset()
	if _, err := finder.Ensure(t.Context(), Etcd, Kubectl); err != nil {
		t.Fatal(err)
	}
	if progress.Len() > 0 {
		t.Errorf("progress without a build: %s", progress)
	}
}

func TestEnsureTakesAssetsAndBuildsTheRest(t *testing.T) {
	finder, _, builds := newFinder(t)
	assets := t.TempDir()
	ready := filepath.Join(assets, "etcd")
	if err := os.WriteFile(ready, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Not executable: no program.
	if err := os.WriteFile(filepath.Join(assets, "kubectl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(AssetsEnv, assets)
	found, err := finder.Ensure(t.Context(), Etcd, Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	if found[Etcd] != ready {
		t.Errorf("etcd is %s, want the one of %s", found[Etcd], AssetsEnv)
	}
	if got := builds(); len(got) != 1 || !strings.HasSuffix(got[0], "/kubectl") {
		t.Errorf("built %v, want kubectl", got)
	}
}

func TestEnsureInParallelBuildsOnce(t *testing.T) {
	finder, _, builds := newFinder(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			own := finder
			own.Progress = &bytes.Buffer{}
			if _, err := own.Ensure(t.Context(), Kwok); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := builds(); len(got) != 1 {
		t.Errorf("built %v, want one build", got)
	}
}

func TestEnsureKeepsWhatWasBuiltBeforeAFailure(t *testing.T) {
	finder, _, builds := newFinder(t)
	t.Setenv("FAKE_GO_FAIL", "kubectl")
	_, err := finder.Ensure(t.Context(), Etcd, Kubectl)
	if err == nil || !strings.Contains(err.Error(), "main.go:1:1: does not compile") {
		t.Fatalf("error %v does not have the compiler's message", err)
	}
	leftovers, err := filepath.Glob(filepath.Join(finder.CacheDir, "bin", scratchPrefix+"*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %v, %v", leftovers, err)
	}
	t.Setenv("FAKE_GO_FAIL", "")
	if _, err := finder.Ensure(t.Context(), Etcd, Kubectl); err != nil {
		t.Fatal(err)
	}
	if got := builds(); len(got) != 3 {
		t.Errorf("built %v, want etcd once and kubectl twice", got)
	}
}

func TestEnsureRemovesLeftoversOfKilledBuilds(t *testing.T) {
	finder, _, _ := newFinder(t)
	leftover := filepath.Join(finder.CacheDir, "bin", scratchPrefix+"1", "output")
	if err := os.MkdirAll(leftover, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := finder.Ensure(t.Context(), Etcd); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", leftover, err)
	}
}

func TestEnsureWithoutGoSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(AssetsEnv, "")
	_, err := Finder{CacheDir: t.TempDir(), Progress: &bytes.Buffer{}}.Ensure(t.Context(), Etcd)
	if err == nil || !strings.Contains(err.Error(), AssetsEnv) {
		t.Errorf("error %v does not name %s", err, AssetsEnv)
	}
}

func TestCacheDirOfEnvironment(t *testing.T) {
	want := t.TempDir()
	t.Setenv(CacheEnv, want)
	if got, err := CacheDir(); err != nil || got != want {
		t.Errorf("CacheDir() = %q, %v, want %q", got, err, want)
	}
}
