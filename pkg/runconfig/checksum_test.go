// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The recipe, with sums computed by sha256sum over the text in the comment.
func TestTheChecksumIsThatOfSha256sum(t *testing.T) {
	for name, c := range map[string]struct {
		data, labels map[string]string
		want         string
	}{
		// printf ''
		"nothing": {want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		// printf 'a1b2x3y4'
		"data, then labels, each sorted": {
			data: map[string]string{"b": "2", "a": "1"}, labels: map[string]string{"y": "4", "x": "3"},
			want: "ec7a970b3bf1c39aebc608be2240c08b0e647d0ba6c395577f99d4b45058590a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				if got := Checksum(c.data, c.labels); got != c.want {
					t.Fatalf("got %s, want %s", got, c.want)
				}
			}
		})
	}
	if Checksum(map[string]string{"a": "1"}, nil) == Checksum(map[string]string{"a": "2"}, nil) {
		t.Error("another value has the same checksum")
	}
}

// TestChecksumIsUpstreams: the checksum of each ConfigMap that ToolHive's operator made is the one that it
// wrote on it.
func TestChecksumIsUpstreams(t *testing.T) {
	root := os.Getenv("FREEHOLD_UPSTREAM")
	if root == "" {
		root = filepath.FromSlash("../../../shared/upstream")
		if _, err := os.Stat(root); os.IsNotExist(err) {
			t.Skipf("ToolHive's rendered objects are not here (%s); set FREEHOLD_UPSTREAM to the directory that holds golden/", root)
		}
	}
	checked := 0
	err := filepath.WalkDir(filepath.Join(root, "golden"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(entry.Name(), "-runconfig.yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var configMap struct {
			Metadata struct {
				Labels, Annotations map[string]string
			}
			Data map[string]string
		}
		if err := yaml.Unmarshal(data, &configMap); err != nil {
			return err
		}
		checked++
		want := configMap.Metadata.Annotations[v1beta1.AnnotationContentChecksum]
		if got := Checksum(configMap.Data, configMap.Metadata.Labels); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Error("no ConfigMap was checked")
	}
	t.Logf("%d ConfigMaps checked", checked)
}
