// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	programName = "freehold"
	// user is an id that is not root and that no distribution gives out. It is a number because a kubelet cannot see from
	// a name whether it means root.
	user   = "65532:65532"
	source = "https://github.com/freehold-dev/freehold"
)

// machines are the ELF machines that a platform's architecture stands for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// build makes the image of one platform.
func build(opts options, p program) (v1.Image, error) {
	binary, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	if err := checkBinary(binary, p.platform); err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	files := []file{{path: programName, mode: 0o755, data: binary}}
	for _, path := range opts.include {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: filepath.Base(path), mode: 0o644, data: data})
	}
	contents, err := archive(opts.created, files...)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(contents)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: opts.created}, CreatedBy: "hack/build-image.sh"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.platform.OS, p.platform.Architecture, p.platform.Variant
	config.Created = v1.Time{Time: opts.created}
	config.Config = v1.Config{
		Entrypoint:   []string{"/" + programName},
		User:         user,
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       programName,
			"org.opencontainers.image.description": "Kubernetes operator for ToolHive MCPServers",
			"org.opencontainers.image.source":      source,
			"org.opencontainers.image.url":         source,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     opts.version,
			"org.opencontainers.image.revision":    opts.revision,
			"org.opencontainers.image.created":     opts.created.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(img, config)
}

// checkBinary refuses a program that could not run in an image with nothing else in it.
func checkBinary(data []byte, platform v1.Platform) error {
	binary, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want, ok := machines[platform.Architecture]; !ok || platform.OS != "linux" || binary.Machine != want {
		return fmt.Errorf("built for %s, not for %s", binary.Machine, platform)
	}
	for _, header := range binary.Progs {
		if header.Type == elf.PT_INTERP {
			return fmt.Errorf("not static: it needs a dynamic loader")
		}
	}
	return nil
}

// file is one file of the image, owned by root.
type file struct {
	path string
	mode int64
	data []byte
}

// archive makes a tar archive in which nothing depends on where and when it is made.
func archive(modified time.Time, files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, f := range files {
		err := writer.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: modified, Format: tar.FormatPAX,
		})
		if err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
