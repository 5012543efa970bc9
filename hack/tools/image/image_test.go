// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const emptyProgram = "package main\n\nfunc main() {}\n"

// compile builds a program that does nothing.
func compile(t *testing.T, platform string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(emptyProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	out := filepath.Join(dir, programName)
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, flags...), "-o", out, "main.go")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	return out
}

// pack runs the command and returns the directory it wrote to.
func pack(t *testing.T, programs ...string) (string, error) {
	t.Helper()
	out := t.TempDir()
	args := []string{
		"-name=example.com/freehold", "-tag=v1.2.3", "-version=v1.2.3-dev+abc", "-revision=abc", "-created=86400", "-out=" + out,
	}
	included := t.TempDir()
	for _, name := range []string{"LICENSE", "THIRD_PARTY_LICENCES.md"} {
		path := filepath.Join(included, name)
		if err := os.WriteFile(path, []byte("a licence\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-include="+path)
	}
	return out, run(append(args, programs...))
}

func TestSameInputSameBytes(t *testing.T) {
	amd, arm := "linux/amd64="+compile(t, "linux/amd64"), "linux/arm64="+compile(t, "linux/arm64")
	first, err := pack(t, amd, arm)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(t, amd, arm)
	if err != nil {
		t.Fatal(err)
	}
	one, two := contents(t, first), contents(t, second)
	if len(one) == 0 || !reflect.DeepEqual(one, two) {
		t.Error("two runs differ")
	}
	for _, name := range []string{"digest", "freehold-linux-amd64.tar", "freehold-linux-arm64.tar", "oci/index.json"} {
		if one[name] == "" {
			t.Errorf("%s was not written", name)
		}
	}
}

func TestLayoutHoldsBothPlatforms(t *testing.T) {
	out, err := pack(t, "linux/amd64="+compile(t, "linux/amd64"), "linux/arm64="+compile(t, "linux/arm64"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := layout.ImageIndexFromPath(filepath.Join(out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.TrimSpace(contents(t, out)["digest"])
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != digest {
		t.Fatalf("the layout holds %v, want the index %s", manifest.Manifests, digest)
	}
	if tag := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != "v1.2.3" {
		t.Errorf("the layout calls it %q, want the tag", tag)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, descriptor := range manifest.Manifests {
		platforms = append(platforms, descriptor.Platform.String())
		img, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		check(t, img, *descriptor.Platform)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !reflect.DeepEqual(platforms, want) {
		t.Errorf("platforms %v, want %v", platforms, want)
	}
}

func TestArchiveHoldsOneImage(t *testing.T) {
	out, err := pack(t, "linux/amd64="+compile(t, "linux/amd64"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, "freehold-linux-amd64.tar")
	// What docker load and ctr images import call it, and what a manifest has to name.
	archived, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		t.Fatal(err)
	}
	if len(archived) != 1 || !slices.Equal(archived[0].RepoTags, []string{"example.com/freehold:v1.2.3"}) {
		t.Errorf("the archive holds %+v", archived)
	}
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, img, v1.Platform{OS: "linux", Architecture: "amd64"})
}

// check holds an image to what a restricted pod needs of it.
func check(t *testing.T, img v1.Image, platform v1.Platform) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		t.Errorf("the image is for %s/%s, want %s", config.OS, config.Architecture, platform)
	}
	day := time.Unix(86400, 0).UTC()
	if config.Config.User != "65532:65532" || !reflect.DeepEqual(config.Config.Entrypoint, []string{"/freehold"}) ||
		!config.Created.Equal(day) {
		t.Errorf("user %q, entrypoint %q, created %s", config.Config.User, config.Config.Entrypoint, config.Created)
	}
	for label, want := range map[string]string{
		"version": "v1.2.3-dev+abc", "revision": "abc", "created": "1970-01-02T00:00:00Z", "licenses": "Apache-2.0",
		"title": "freehold", "source": source,
	} {
		if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, want 1 (%v)", len(layers), err)
	}
	if kind, err := layers[0].MediaType(); err != nil || (kind != types.OCILayer && kind != types.DockerLayer) {
		t.Errorf("the layer is a %s (%v)", kind, err)
	}
	modes := map[string]int64{}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = layer.Close() }()
	for reader := tar.NewReader(layer); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(day) {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
	}
	if want := map[string]int64{"freehold": 0o755, "LICENSE": 0o644, "THIRD_PARTY_LICENCES.md": 0o644}; !reflect.DeepEqual(modes, want) {
		t.Errorf("files %v, want %v", modes, want)
	}
}

func TestRefusesWhatWouldNotRun(t *testing.T) {
	amd := compile(t, "linux/amd64")
	dynamic := compile(t, "linux/amd64", "-buildmode=pie")
	for name, tc := range map[string]struct{ argument, want string }{
		"other architecture": {"linux/arm64=" + amd, "built for EM_X86_64, not for linux/arm64"},
		"other system":       {"windows/amd64=" + amd, "not for windows/amd64"},
		"not static":         {"linux/amd64=" + dynamic, "not static"},
		"no program":         {"linux/amd64=" + os.DevNull, "EOF"},
		"no platform":        {amd, "want PLATFORM=PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pack(t, tc.argument); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	if err := run(nil); err == nil {
		t.Error("no arguments: want an error")
	}
}

// contents reads every file below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		all[filepath.ToSlash(relative)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
