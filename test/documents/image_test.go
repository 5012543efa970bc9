// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/freehold-dev/freehold/test/harness"
)

// TestGetImage builds the image as the README says, and pushes it to a registry. The cluster's Deployment names it there then, and
// the archive for kind and k3s has the name that the manifests have.
func TestGetImage(t *testing.T) {
	harness.Long(t)
	r := newReader(t)
	r.removeOperator(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, command := range Of(t) {
		command.Text = strings.ReplaceAll(command.Text, "registry.example.com", host)
		r.types(t, command)
	}

	const deployment = "jsonpath={.spec.template.spec.containers[0].image}"
	used := r.kubectl.Run(t, "get", "deployment", "freehold", "-n", "freehold-system", "-o", deployment)
	version, found := strings.CutPrefix(used, host+"/freehold:")
	if !found {
		t.Fatalf("the Deployment runs %s", used)
	}
	reference, err := name.ParseReference(used)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, image := range manifest.Manifests {
		platforms = append(platforms, image.Platform.String())
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the registry has the image for %v, want %v", platforms, want)
	}

	archive := filepath.Join(Root, "_output", "image", "freehold-linux-amd64.tar")
	held, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		t.Fatal(err)
	}
	if want := "ghcr.io/freehold-dev/freehold:" + version; len(held) != 1 || !slices.Equal(held[0].RepoTags, []string{want}) {
		t.Errorf("%s holds %+v, want %s", archive, held, want)
	}
}
