// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/freehold-dev/freehold/deploy"
)

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	archives, err := Write(t.Context(), dir, io.Discard, Pause, Server, NextServer)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name, program string
		env           []string
	}{
		{Pause, "pause", nil},
		{Server, "mcp-server", []string{"MCP_SERVER_VERSION=1"}},
		{NextServer, "mcp-server", []string{"MCP_SERVER_VERSION=2"}},
	} {
		tag, err := name.NewTag(want.name)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(archives[i], &tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", want.name, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"/" + want.program}, config.Config.Entrypoint); diff != "" {
			t.Errorf("%s, entrypoint (-want +got):\n%s", want.name, diff)
		}
		if diff := cmp.Diff(want.env, config.Config.Env); diff != "" {
			t.Errorf("%s, environment (-want +got):\n%s", want.name, diff)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%s has %d layers (%v)", want.name, len(layers), err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int64{"tmp/": 0o1777, want.program: 0o755}, modes(t, content)); diff != "" {
			t.Errorf("%s, files (-want +got):\n%s", want.name, diff)
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}
	// Programs that were built for the archives are of no use any more.
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(archives) {
		t.Errorf("%d files are left, want %d (%v)", len(entries), len(archives), err)
	}
}

func TestLocalServerHasTheNameOfTheSamplesImage(t *testing.T) {
	samples, err := fs.Glob(deploy.Samples, "samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatal("no samples", err)
	}
	for _, sample := range samples {
		text, err := deploy.Samples.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kind: MCPServer") && !strings.Contains(string(text), "  image: "+Sample+"\n") {
			t.Errorf("%s has another image than %s", sample, Sample)
		}
	}
}

func modes(t *testing.T, layer io.Reader) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for reader := tar.NewReader(layer); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.Mode
	}
}

// Only an image with a tag other than latest is taken as it is, unless a pod says how to pull. No registry is asked for the names but
// Sample, on a node that lacks it.
func TestNamesNeedNoPull(t *testing.T) {
	for image := range contents {
		tag, err := name.NewTag(image, name.StrictValidation)
		if err != nil {
			t.Errorf("%s: %v", image, err)
			continue
		}
		if image != Sample && !strings.HasSuffix(tag.RegistryStr(), ".invalid") || tag.TagStr() == "latest" {
			t.Errorf("%s: a kubelet might look for it elsewhere", image)
		}
	}
}

func TestUnknownImage(t *testing.T) {
	if _, err := Write(t.Context(), t.TempDir(), io.Discard, "freehold.invalid/none:1"); err == nil {
		t.Error("an image was made that nobody has described")
	}
}
