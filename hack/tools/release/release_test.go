// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	checkout  = filepath.Join("..", "..", "..")
	platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
	built     string
)

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "release-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// programs builds programs that do nothing, of a module that is called as ours, once. It returns the directory of them.
var programs = sync.OnceValues(func() (string, error) {
	source := filepath.Join(built, "source")
	binaries := filepath.Join(built, "binaries")
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{"go.mod": "module " + project + "\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for _, on := range platforms {
		system, arch, _ := strings.Cut(on, "/")
		p := platform{system, arch}
		for _, program := range []string{operatorName, pluginName} {
			build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", p.file(binaries, program), ".")
			build.Dir = source
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+system, "GOARCH="+arch)
			if text, err := build.CombinedOutput(); err != nil {
				return "", fmt.Errorf("%w\n%s", err, text)
			}
		}
	}
	return binaries, nil
})

// digest is that of the index in the layout that newOutput writes.
const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// newOutput returns a directory with a layout of an image for two platforms, and an archive of an image.
func newOutput(t *testing.T, tag string) string {
	t.Helper()
	out := t.TempDir()
	hash := strings.TrimPrefix(digest, "sha256:")
	write(t, filepath.Join(out, "oci", "index.json"), fmt.Sprintf(
		`{"manifests": [{"digest": %q, "annotations": {"org.opencontainers.image.ref.name": %q}}]}`, digest, tag))
	write(t, filepath.Join(out, "oci", "blobs", "sha256", hash), fmt.Sprintf(`{"manifests": [
		{"digest": "sha256:%s", "platform": {"os": "linux", "architecture": "amd64"}},
		{"digest": "sha256:%s", "platform": {"os": "linux", "architecture": "arm64"}}]}`, strings.Repeat("b", 64), strings.Repeat("c", 64)))
	write(t, filepath.Join(out, "freehold-linux-amd64.tar"), "an image")
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// versionOf is the version of the checkout.
func versionOf(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(read(t, checkout, "VERSION"))
}

// arguments are those of a rehearsal of this checkout.
func arguments(t *testing.T, out string, flags ...string) []string {
	t.Helper()
	binaries, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	version := versionOf(t)
	args := []string{
		"-root=" + checkout, "-binaries=" + binaries, "-out=" + out, "-version=" + version, "-build-version=" + version + "-dev+abc",
		"-commit=abc", "-image=ghcr.io/freehold-dev/freehold", "-created=86400",
	}
	return append(append(args, flags...), platforms...)
}

// rehearse makes a release of this checkout, and returns where it is.
func rehearse(t *testing.T, flags ...string) string {
	t.Helper()
	out := newOutput(t, versionOf(t))
	if err := run(arguments(t, out, flags...)); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSameInputSameBytes(t *testing.T) {
	version := versionOf(t)
	first := rehearse(t)
	// Neither where the programs are nor of when they are may matter.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS(filepath.Join(built, "binaries"))); err != nil {
		t.Fatal(err)
	}
	second := rehearse(t, "-binaries="+elsewhere)
	names := []string{
		"SHA256SUMS", "freehold-linux-amd64.tar", "freehold.yaml", "install-namespaced.yaml", "install-without-crd.yaml", "install.yaml",
		"freehold-" + strings.TrimPrefix(version, "v") + ".tgz", "notes.md", "oci", "freehold_" + version + "_linux_amd64.spdx.json", "freehold_" + version + "_linux_arm64.spdx.json",
	}
	for _, on := range platforms {
		name := "kubectl-freehold_" + version + "_" + strings.ReplaceAll(on, "/", "_")
		names = append(names, name+".tar.gz", name+".spdx.json")
	}
	slices.Sort(names)
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
		if !entry.IsDir() && read(t, first, entry.Name()) != read(t, second, entry.Name()) {
			t.Errorf("%s differs between two runs", entry.Name())
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("a release has\n%q\nwant\n%q", got, names)
	}
}

// The chart is that of the checkout, but for the image's digest.
func TestChart(t *testing.T) {
	out := rehearse(t)
	files, err := unpack([]byte(read(t, out, "freehold-"+strings.TrimPrefix(versionOf(t), "v")+".tgz")))
	if err != nil {
		t.Fatal(err)
	}
	pinned := 0
	for _, f := range files {
		name, inChart := strings.CutPrefix(f.name, "freehold/")
		want := read(t, checkout, "deploy", "chart", name)
		if name == "values.yaml" {
			pinned = strings.Count(string(f.data), "@"+digest)
			f.data = []byte(strings.ReplaceAll(string(f.data), "@"+digest, ""))
		}
		if !inChart || string(f.data) != want {
			t.Errorf("%s is not that of the checkout", f.name)
		}
	}
	if len(files) < 20 || pinned != 1 {
		t.Errorf("it has %d files, and the digest %d times", len(files), pinned)
	}
}

func TestArchives(t *testing.T) {
	out := rehearse(t)
	for _, on := range platforms {
		data := []byte(read(t, out, "kubectl-freehold_"+versionOf(t)+"_"+strings.ReplaceAll(on, "/", "_")+".tar.gz"))
		compressed, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if h := compressed.Header; h.Name != "" || h.Comment != "" || len(h.Extra) > 0 || !h.ModTime.IsZero() || h.OS != 255 {
			t.Errorf("%s: the header of the compressed stream is %+v", on, h)
		}
		program := pluginName
		want := map[string]int64{"LICENSE": 0o644, licenceList: 0o644}
		if on == "windows/amd64" {
			program += ".exe"
		} else {
			want[completion] = 0o755
		}
		want[program] = 0o755
		got := map[string]int64{}
		files, err := unpack(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			got[f.name] = f.mode
			dir := checkout
			if f.name == completion {
				dir = filepath.Join(checkout, "deploy", "krew")
			}
			if f.name != program && string(f.data) != read(t, dir, f.name) {
				t.Errorf("%s: %s is not that of the checkout", on, f.name)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has %v, want %v", on, got, want)
		}
	}
}

// TestPackTellsNothing shows that an archive tells nothing of the machine that makes it, and that order does not matter.
func TestPackTellsNothing(t *testing.T) {
	day := time.Unix(86400, 0)
	one, err := pack(day, []file{{"b", 0o644, []byte("2")}, {"a", 0o755, []byte("1")}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := pack(day, []file{{"a", 0o755, []byte("1")}, {"b", 0o644, []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("the order of the files matters")
	}
	if three, err := pack(day.Add(time.Second), []file{{"a", 0o755, []byte("1")}}); err != nil || bytes.Equal(one, three) {
		t.Errorf("the time of the source is not in it (%v)", err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	for range 2 {
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(day) || !h.AccessTime.IsZero() || !h.ChangeTime.IsZero() ||
			len(h.PAXRecords) > 0 {
			t.Errorf("%s tells %+v", h.Name, h)
		}
	}
}

func TestSums(t *testing.T) {
	out := rehearse(t)
	listed := map[string]bool{}
	for line := range strings.Lines(read(t, out, sumsName)) {
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || sum([]byte(read(t, out, name))) != want {
			t.Errorf("%q is not so", line)
		}
		listed[name] = true
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if want := !entry.IsDir() && entry.Name() != sumsName; listed[entry.Name()] != want {
			t.Errorf("%s is listed: %t, want %t", entry.Name(), listed[entry.Name()], want)
		}
	}
}

// TestCheckBuild shows that a program is refused that hack/build.sh would not have built.
func TestCheckBuild(t *testing.T) {
	good := map[string]string{"GOOS": "linux", "GOARCH": "amd64", "CGO_ENABLED": "0", "-trimpath": "true", "GOAMD64": "v1"}
	for _, tc := range []struct{ setting, value, want string }{
		{"GOAMD64", "v1", ""},
		{"GOOS", "darwin", "not built with map[GOOS:linux]"},
		{"GOARCH", "arm64", "not built with map[GOARCH:amd64]"},
		{"CGO_ENABLED", "1", "not built with map[CGO_ENABLED:0]"},
		{"-trimpath", "", "not built with map[-trimpath:true]"},
	} {
		settings := maps.Clone(good)
		settings[tc.setting] = tc.value
		info := &debug.BuildInfo{Main: debug.Module{Path: project}}
		for key, value := range settings {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		switch err := checkBuild(info, platform{"linux", "amd64"}); {
		case tc.want == "" && err != nil:
			t.Error(err)
		case tc.want != "" && (err == nil || err.Error() != tc.want):
			t.Errorf("%s=%s: got error %v, want %q", tc.setting, tc.value, err, tc.want)
		}
	}
}

func TestRefusesOtherInput(t *testing.T) {
	binaries, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	swapped := t.TempDir()
	if err := os.CopyFS(swapped, os.DirFS(binaries)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(swapped, "darwin", "arm64", pluginName), read(t, binaries, "linux", "arm64", pluginName))
	foreign := t.TempDir()
	if err := os.CopyFS(foreign, os.DirFS(binaries)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(foreign, "linux", "amd64", operatorName), read(t, self))
	for name, tc := range map[string]struct {
		tag, flag, want string
	}{
		"a program for another platform": {versionOf(t), "-binaries=" + swapped, "not built with map[GOOS:darwin]"},
		"a program of another module":    {versionOf(t), "-binaries=" + foreign, "built from the module"},
		"no program":                     {versionOf(t), "-binaries=" + t.TempDir(), "no such file"},
		"an image with another tag":      {"v9.9.9", "-commit=abc", "want one image with the tag " + versionOf(t)},
		"a released version that the changelog does not have": {
			versionOf(t), "-build-version=", "there is nothing about " + versionOf(t),
		},
		"no version": {versionOf(t), "-version=", "-version is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(arguments(t, newOutput(t, tc.tag), tc.flag)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	if err := run(arguments(t, newOutput(t, versionOf(t)))[:8]); err == nil || !strings.Contains(err.Error(), "no platform") {
		t.Errorf("without platforms: %v", err)
	}
}

// unpack reads the files of a compressed archive.
func unpack(data []byte) ([]file, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var files []file
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files = append(files, file{header.Name, header.Mode, content})
	}
}
