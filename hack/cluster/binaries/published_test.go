// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// authors serve programs on loopback as setup-envtest's index, its archives and Kubernetes' releases are served.
type authors struct {
	*httptest.Server
	// version is that of the archive in the index.
	version string
	// broken has paths whose content is not what its sum says.
	broken string
	asked  []string
}

// program is one that says what it is.
func program(tool Tool) string { return "#!/bin/sh\necho published " + string(tool) + "\n" }

func newAuthors(t *testing.T) *authors {
	t.Helper()
	version, err := Version(KubeAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	a := &authors{version: version}
	platform := runtime.GOOS + "-" + runtime.GOARCH
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked = append(a.asked, r.URL.Path)
		archive := a.archive(t)
		name := fmt.Sprintf("envtest-%s-%s.tar.gz", a.version, platform)
		tool := Tool(strings.TrimSuffix(filepath.Base(r.URL.Path), ".sha256"))
		switch {
		case r.URL.Path == "/index":
			fmt.Fprintf(w, "releases:\n  %s:\n    %s:\n      hash: %x\n      selfLink: %s/%s\n", a.version, name, sha512.Sum512(archive), a.URL, name)
		case r.URL.Path == "/"+name:
			if a.broken == "archive" {
				archive = a.archiveOf(t, "another program")
			}
			_, _ = w.Write(archive)
		case !slices.Contains(ofReleases, tool) || !strings.HasPrefix(r.URL.Path, "/"+version+"/bin/linux/"+runtime.GOARCH+"/"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			fmt.Fprintf(w, "%x", sha256.Sum256([]byte(program(tool))))
		case a.broken == string(tool):
			fmt.Fprint(w, "another program")
		default:
			fmt.Fprint(w, program(tool))
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *authors) archive(t *testing.T) []byte { return a.archiveOf(t, "") }

// archiveOf is an archive of programs, with another content if one is given.
func (*authors) archiveOf(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, tool := range ofEnvtest {
		text := program(tool) + content
		if err := files.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + string(tool), Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (f Finder) of(index, releases string) Finder {
	f.Published = true
	from := f.published()
	from.index, from.releases, from.patience = index, releases, time.Minute
	f.from = &from
	return f
}

// What Kubernetes publishes is fetched once, and only the rest is built.
func TestPublishedProgramsAreFetched(t *testing.T) {
	finder, progress, builds := newFinder(t)
	a := newAuthors(t)
	finder = finder.of(a.URL+"/index", a.URL)
	for range 2 {
		found, err := finder.Ensure(t.Context(), All()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range ofEnvtest {
			if content, err := os.ReadFile(found[tool]); err != nil || string(content) != program(tool) {
				t.Errorf("%s is %q: %v", tool, content, err)
			}
		}
	}
	built := []string{"k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes/cmd/kube-scheduler", "sigs.k8s.io/kwok/cmd/kwok"}
	asked := 3
	if runtime.GOOS == "linux" {
		built, asked = built[2:], 7
	}
	if got := builds(); !slices.Equal(got, built) {
		t.Errorf("%v are built, want %v", got, built)
	}
	if len(a.asked) != asked {
		t.Errorf("the authors are asked for %v", a.asked)
	}
	if told := progress.String(); !strings.Contains(told, "fetching etcd, kube-apiserver and kubectl of Kubernetes "+a.version) {
		t.Errorf("the progress is\n%s", told)
	}
	left, err := filepath.Glob(filepath.Join(finder.CacheDir, "published", scratchPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over are %v: %v", left, err)
	}
}

// Whatever is wrong with what is published, the programs are built, and nothing wrong is kept.
func TestProgramsAreBuiltIfNobodyPublishesThem(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.CloseClientConnections)
	for name, c := range map[string]struct {
		change func(*authors)
		index  string
		says   string
	}{
		"nobody listens":       {nil, "http://127.0.0.1:1/index", "connection refused"},
		"nobody answers":       {nil, silent.URL, "nothing came for 300ms"},
		"no index":             {func(a *authors) { a.Config.Handler = http.NotFoundHandler() }, "", "404"},
		"another version":      {func(a *authors) { a.version = "v1.30.0" }, "", "unable to find archive"},
		"another archive":      {func(a *authors) { a.broken = "archive" }, "", "checksum mismatch"},
		"another release":      {func(a *authors) { a.broken = string(KubeControllerManager) }, "", "has the SHA-256 sum"},
		"fewer than requested": {func(a *authors) { a.broken = string(KubeScheduler) }, "", "has the SHA-256 sum"},
	} {
		t.Run(name, func(t *testing.T) {
			finder, progress, builds := newFinder(t)
			a := newAuthors(t)
			if c.change != nil {
				c.change(a)
			}
			if c.index == "" {
				c.index = a.URL + "/index"
			}
			if strings.HasPrefix(c.says, "has the SHA") && runtime.GOOS != "linux" {
				t.Skip("Kubernetes publishes these programs for Linux alone")
			}
			finder = finder.of(c.index, a.URL)
			if c.index == silent.URL {
				finder.from.patience = 300 * time.Millisecond
			}
			found, err := finder.Ensure(t.Context(), All()...)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(All()) || len(builds()) == 0 {
				t.Errorf("found are %v, built %v", found, builds())
			}
			for tool, path := range found {
				if content, err := os.ReadFile(path); err != nil || strings.Contains(string(content), "another") {
					t.Errorf("%s is %q: %v", tool, content, err)
				}
			}
			if told := progress.String(); !strings.Contains(told, "those are built: ") || !strings.Contains(told, c.says) {
				t.Errorf("the progress does not say %q:\n%s", c.says, told)
			}
		})
	}
}

// A suite is not to depend on what others publish.
func TestSuitesFetchNothing(t *testing.T) {
	finder, _, builds := newFinder(t)
	a := newAuthors(t)
	finder = finder.of(a.URL+"/index", a.URL)
	finder.Published = false
	if _, err := finder.Ensure(t.Context(), All()...); err != nil {
		t.Fatal(err)
	}
	if len(a.asked) > 0 || len(builds()) != len(All()) {
		t.Errorf("asked for %v, built %v", a.asked, builds())
	}
}

// A kubectl on the PATH is used if Kubernetes supports it with the API server.
func TestKubectlOfTheUserIsTaken(t *testing.T) {
	pinned, err := Version(KubeAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	minor := utilversion.MustParseSemantic(pinned).Minor()
	for says, want := range map[string]bool{
		pinned:                            true,
		fmt.Sprintf("v1.%d.9", minor-1):   true,
		fmt.Sprintf("v1.%d.0+k3s", minor): true,
		fmt.Sprintf("v1.%d.0", minor-2):   false,
		"v2.37.0":                         false,
		"nonsense":                        false,
	} {
		t.Run(says, func(t *testing.T) {
			finder, _, builds := newFinder(t)
			dir := t.TempDir()
			t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			own := filepath.Join(dir, "kubectl")
			if err := os.WriteFile(own, fmt.Appendf(nil, "#!/bin/sh\necho 'clientVersion: {gitVersion: %s}'\n", says), 0o755); err != nil {
				t.Fatal(err)
			}
			found, err := finder.of("http://127.0.0.1:1", "http://127.0.0.1:1").Ensure(t.Context(), Kubectl)
			if err != nil || (found[Kubectl] == own) != want || (len(builds()) == 0) != want {
				t.Errorf("found is %v, built %v: %v", found, builds(), err)
			}
		})
	}
}
