// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/remote"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/store"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/versions"
	"sigs.k8s.io/yaml"
)

// releasesURL is where Kubernetes publishes its programs.
const releasesURL = "https://dl.k8s.io/release"

// patience is how long a server may send nothing before the programs are built instead.
const patience = 3 * time.Second

// published gets programs that their authors publish, of exactly the pinned version of Kubernetes and for this platform. All are checked
// by the sums that are published with them.
type published struct {
	// dir is where they are kept.
	dir string
	// index is the URL of the index of setup-envtest, and releases that of Kubernetes' releases.
	index, releases string
	patience        time.Duration
	progress        io.Writer
}

func (f Finder) published() published {
	return published{
		dir: filepath.Join(f.CacheDir, "published"), index: remote.DefaultIndexURL, releases: releasesURL,
		patience: patience, progress: f.Progress,
	}
}

var (
	// ofEnvtest are the programs in the archives that setup-envtest fetches.
	ofEnvtest = []Tool{Etcd, KubeAPIServer, Kubectl}
	// ofReleases are programs that Kubernetes publishes for Linux alone.
	ofReleases = []Tool{KubeControllerManager, KubeScheduler}
)

// path is where a program is once it has been fetched; empty for one that nobody publishes.
func (p published) path(tool Tool) (string, error) {
	version, err := Version(KubeAPIServer)
	if err != nil {
		return "", err
	}
	switch {
	case slices.Contains(ofEnvtest, tool):
		item, err := envtestItem(version)
		if err != nil {
			return "", err
		}
		dir, err := store.NewAt(p.dir).Path(item)
		return filepath.Join(dir, string(tool)), err
	case slices.Contains(ofReleases, tool) && runtime.GOOS == "linux":
		return filepath.Join(p.dir, "releases", version+"-"+runtime.GOARCH, string(tool)), nil
	}
	return "", nil
}

// find returns the path of a tool that the user has, or that was fetched, or "" if there is none.
func (p published) find(ctx context.Context, tool Tool) (string, error) {
	if tool == Kubectl {
		if path := kubectlOnPath(ctx); path != "" {
			return path, nil
		}
	}
	path, err := p.path(tool)
	if err != nil || path == "" {
		return "", err
	}
	return firstExecutable([]string{path})
}

// fetch gets what it can of the tools. What it cannot get is built, so it says why, and fails for nothing.
func (p published) fetch(ctx context.Context, tools []Tool) {
	tools = slices.DeleteFunc(slices.Clone(tools), func(tool Tool) bool {
		path, err := p.path(tool)
		return err == nil && path == "" // Nobody publishes it.
	})
	if len(tools) == 0 {
		return
	}
	begin := time.Now()
	if err := p.fetchAll(ctx, tools); err != nil {
		say(p.progress, "not all programs can be fetched, those are built: %v", err)
		return
	}
	say(p.progress, "fetched published programs in %s", elapsedSince(begin))
}

// fetchAll gets tools that are published, until one cannot be had.
func (p published) fetchAll(ctx context.Context, tools []Tool) error {
	version, err := Version(KubeAPIServer)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(tools, func(tool Tool) bool { return slices.Contains(ofEnvtest, tool) }) {
		if err := p.fetchEnvtest(ctx, version); err != nil {
			return err
		}
	}
	for _, tool := range tools {
		if slices.Contains(ofReleases, tool) {
			if err := p.fetchRelease(ctx, version, tool); err != nil {
				return err
			}
		}
	}
	return nil
}

func envtestItem(version string) (store.Item, error) {
	concrete, err := versions.FromExpr(strings.TrimPrefix(version, "v"))
	if err != nil || concrete.AsConcrete() == nil {
		return store.Item{}, fmt.Errorf("no version of Kubernetes: %s", version)
	}
	return store.Item{Version: *concrete.AsConcrete(), Platform: versions.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}}, nil
}

// fetchEnvtest gets the archive of a version of Kubernetes that setup-envtest knows.
func (p published) fetchEnvtest(ctx context.Context, version string) error {
	item, err := envtestItem(version)
	if err != nil {
		return err
	}
	client := &remote.HTTPClient{Log: logr.Discard(), IndexURL: p.index}
	platform := versions.PlatformItem{Platform: item.Platform}
	return p.download(ctx, "etcd, kube-apiserver and kubectl of Kubernetes "+version, func(ctx context.Context, out io.Writer) error {
		if err := client.FetchSum(ctx, item.Version, &platform); err != nil {
			return err
		}
		return client.GetVersion(ctx, item.Version, platform, out)
	}, func(archive *os.File) error {
		return store.NewAt(p.dir).Add(logr.NewContext(ctx, logr.Discard()), item, archive)
	})
}

// fetchRelease gets a program of a release of Kubernetes, and the sum that is beside it.
func (p published) fetchRelease(ctx context.Context, version string, tool Tool) error {
	final, err := p.path(tool)
	if err != nil {
		return err
	}
	from := fmt.Sprintf("%s/%s/bin/linux/%s/%s", p.releases, version, runtime.GOARCH, tool)
	return p.download(ctx, string(tool)+" "+version, func(ctx context.Context, out io.Writer) error {
		var sum bytes.Buffer
		if err := get(ctx, from+".sha256", &sum); err != nil {
			return err
		}
		digest := sha256.New()
		if err := get(ctx, from, io.MultiWriter(out, digest)); err != nil {
			return err
		}
		if got := hex.EncodeToString(digest.Sum(nil)); got != strings.TrimSpace(sum.String()) {
			return fmt.Errorf("%s has the SHA-256 sum %s, want %s", from, got, sum.String())
		}
		return nil
	}, func(program *os.File) error {
		if err := errors.Join(program.Chmod(0o755), os.MkdirAll(filepath.Dir(final), 0o755)); err != nil {
			return fmt.Errorf("keeping %s: %w", tool, err)
		}
		return os.Rename(program.Name(), final)
	})
}

// download lets fetch write into a file, and keep do with it what is to be done with the whole of it. fetch has to give up when its
// context ends: nothing has come for as long as the patience is.
func (p published) download(ctx context.Context, what string, fetch func(context.Context, io.Writer) error, keep func(*os.File) error) (err error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of published programs: %w", err)
	}
	file, err := os.CreateTemp(p.dir, scratchPrefix)
	if err != nil {
		return fmt.Errorf("making a file to download to: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), remove(file.Name())) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(p.patience, func() { cancel(fmt.Errorf("nothing came for %s", p.patience)) })
	defer timer.Stop()
	progress := &arrivals{to: file, arrived: func() { timer.Reset(p.patience) }, say: func(bytes int64) {
		say(p.progress, "fetching %s: %d MB", what, bytes>>20)
	}}
	if err := fetch(ctx, progress); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("fetching %s: %w", what, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading what was downloaded: %w", err)
	}
	return keep(file)
}

// remove removes a file, if it is still there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// arrivals tells what arrives, and now and then how much has.
type arrivals struct {
	to      io.Writer
	arrived func()
	say     func(bytes int64)
	bytes   int64
	told    time.Time
}

func (a *arrivals) Write(part []byte) (int, error) {
	a.arrived()
	a.bytes += int64(len(part))
	if time.Since(a.told) > reportInterval {
		a.say(a.bytes)
		a.told = time.Now()
	}
	return a.to.Write(part)
}

func get(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err // It names the URL.
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	return nil
}

// kubectlOnPath returns the kubectl that the user has, if its minor version is at most one away from that of the API server, which is as
// far as Kubernetes supports.
func kubectlOnPath(ctx context.Context) string {
	path, err := exec.LookPath(string(Kubectl))
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, path, "version", "--client", "--output=yaml").Output()
	if err != nil {
		return ""
	}
	var told struct {
		ClientVersion struct {
			GitVersion string `json:"gitVersion"`
		} `json:"clientVersion"`
	}
	pinned, err := Version(KubeAPIServer)
	if err != nil || yaml.Unmarshal(out, &told) != nil {
		return ""
	}
	client, errClient := utilversion.ParseSemantic(told.ClientVersion.GitVersion)
	server, errServer := utilversion.ParseSemantic(pinned)
	if errClient != nil || errServer != nil || client.Major() != server.Major() || max(client.Minor(), server.Minor())-min(client.Minor(), server.Minor()) > 1 {
		return ""
	}
	return path
}
