// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image packs static binaries, one for each platform, into container images from scratch. It needs no
// daemon, no base image and no registry, and the same input gives the same bytes.
//
//	image -name NAME -tag TAG -out DIRECTORY [flags] linux/amd64=BINARY linux/arm64=BINARY
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are the common settings of the images, and where they go.
type options struct {
	tag      name.Tag
	version  string
	revision string
	created  time.Time
	// include are files that every image has at its root, besides the program.
	include []string
	out     string
}

// program is the binary for one platform.
type program struct {
	platform v1.Platform
	path     string
}

func run(args []string) error {
	opts, programs, err := parse(args)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		img, err := build(opts, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &p.platform},
		})
		archive := filepath.Join(opts.out, fmt.Sprintf("%s-%s-%s.tar", programName, p.platform.OS, p.platform.Architecture))
		if err := tarball.WriteToFile(archive, opts.tag, img); err != nil {
			return err
		}
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		fmt.Printf("%s  %s  %s\n", digest, p.platform, archive)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	directory := filepath.Join(opts.out, "oci")
	if err := writeLayout(directory, index, opts.tag); err != nil {
		return err
	}
	fmt.Printf("%s  %s  %s\n", digest, opts.tag, directory)
	return os.WriteFile(filepath.Join(opts.out, "digest"), []byte(digest.String()+"\n"), 0o644)
}

// writeLayout writes an OCI layout that holds the index under the tag's name.
func writeLayout(directory string, index v1.ImageIndex, tag name.Tag) error {
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(),
	}))
}

func parse(args []string) (options, []program, error) {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	repository := flags.String("name", "", "the image's name, without a tag")
	tag := flags.String("tag", "", "the image's tag")
	version := flags.String("version", "", "what the programs call themselves; the tag if it is not given")
	revision := flags.String("revision", "unknown", "the commit that the binaries are built from")
	created := flags.Int64("created", 0, "the image's age, in seconds since 1970")
	var include []string
	flags.Func("include", "a file to put into the image, beside the program; may be repeated", func(path string) error {
		include = append(include, path)
		return nil
	})
	out := flags.String("out", "", "an existing directory to write to")
	if err := flags.Parse(args); err != nil {
		return options{}, nil, err
	}
	ref, err := name.NewTag(*repository+":"+*tag, name.StrictValidation)
	if err != nil {
		return options{}, nil, fmt.Errorf("-name and -tag: %w", err)
	}
	if *out == "" || len(include) == 0 {
		return options{}, nil, fmt.Errorf("-out and, for the licences, -include are needed")
	}
	if flags.NArg() == 0 {
		return options{}, nil, fmt.Errorf("no binary: want arguments such as linux/amd64=PATH")
	}
	var programs []program
	for _, arg := range flags.Args() {
		platform, path, ok := strings.Cut(arg, "=")
		if !ok {
			return options{}, nil, fmt.Errorf("%q: want PLATFORM=PATH", arg)
		}
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return options{}, nil, fmt.Errorf("%q: %w", arg, err)
		}
		programs = append(programs, program{platform: *parsed, path: path})
	}
	return options{
		tag: ref, version: cmp.Or(*version, ref.TagStr()), revision: *revision, created: time.Unix(*created, 0).UTC(),
		include: include, out: *out,
	}, programs, nil
}
