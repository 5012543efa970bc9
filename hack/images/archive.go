// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// pack writes an image with one program as an archive.
func pack(archive, reference, program string, c content) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	// It is written to a disk of this machine and read again from there: compression would only cost time.
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return layerOf(program, c.program), nil },
		tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{"/" + c.program}, WorkingDir: "/", Env: c.env}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}

// layerOf streams the files of an image: the program, and an empty /tmp for all users. The reader gets an error of
// writing.
func layerOf(program, path string) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeLayer(writer, program, path)) }()
	return reader
}

func writeLayer(out io.Writer, program, path string) error {
	file, err := os.Open(program)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	layer := tar.NewWriter(out)
	if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return err
	}
	if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(layer, file); err != nil {
		return err
	}
	return layer.Close()
}
