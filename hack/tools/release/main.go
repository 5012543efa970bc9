// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes the files of a release from programs and an OCI layout that are built already: archives of the
// plugin, krew's manifest, manifests that name the image by its digest, SBOMs, notes, and checksums of all of them. The same
// input gives the same bytes, wherever and whenever it runs. It reads what it has written once more before it is content.
//
//	release -root CHECKOUT -binaries DIRECTORY -out DIRECTORY -version v1.2.3 [flags] linux/amd64 darwin/arm64 ...
//
// The arguments are the platforms of the plugin. The directory of binaries has one for each platform, such as
// linux/amd64/kubectl-freehold, and the operator's for each platform of the image. That image is in the directory oci of the
// output, as command image writes it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// project is where the source is published, and the path of its module.
	project = "github.com/freehold-dev/freehold"
	website = "https://" + project
	// operatorName and pluginName are the programs.
	operatorName = "freehold"
	pluginName   = "kubectl-freehold"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the settings of a release: the version, its inputs and its output.
type options struct {
	// root is the checkout, binaries and out are directories.
	root, binaries, out string
	// version is that of the release, build what the programs call themselves: another one where this is a rehearsal.
	version, build string
	commit         string
	// image is the name of the operator's image, without a tag.
	image   string
	created time.Time
	// platforms are those of the plugin.
	platforms []platform
}

// isReleased reports whether the programs are built from the commit that the version's tag is at.
func (o options) isReleased() bool { return o.build == o.version }

// platform is an operating system and an architecture that a program is built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// file returns where a program is for a platform.
func (p platform) file(binaries, program string) string {
	if p.os == "windows" {
		program += ".exe"
	}
	return filepath.Join(binaries, p.os, p.arch, program)
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	var opts options
	flags.StringVar(&opts.root, "root", "", "the checkout")
	flags.StringVar(&opts.binaries, "binaries", "", "the directory of the programs")
	flags.StringVar(&opts.out, "out", "", "the directory to write to, with the image in it")
	flags.StringVar(&opts.version, "version", "", "the version that is released")
	flags.StringVar(&opts.build, "build-version", "", "what the programs call themselves; the version if it is not given")
	flags.StringVar(&opts.commit, "commit", "unknown", "the commit that the programs are built from")
	flags.StringVar(&opts.image, "image", "", "the image's name, without a tag")
	created := flags.Int64("created", 0, "when the source was committed, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	for name, value := range map[string]string{
		"root": opts.root, "binaries": opts.binaries, "out": opts.out, "version": opts.version, "image": opts.image,
	} {
		if value == "" {
			return options{}, fmt.Errorf("-%s is needed", name)
		}
	}
	opts.build = cmp.Or(opts.build, opts.version)
	opts.created = time.Unix(*created, 0).UTC()
	for _, arg := range flags.Args() {
		system, arch, ok := strings.Cut(arg, "/")
		if !ok || system == "" || arch == "" {
			return options{}, fmt.Errorf("%q: want a platform such as linux/amd64", arg)
		}
		opts.platforms = append(opts.platforms, platform{system, arch})
	}
	if len(opts.platforms) == 0 {
		return options{}, fmt.Errorf("no platform: want arguments such as linux/amd64")
	}
	return opts, nil
}

func run(args []string) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	image, err := readImage(filepath.Join(opts.out, "oci"), opts.version)
	if err != nil {
		return err
	}
	licences, err := readLicences(filepath.Join(opts.root, licenceList))
	if err != nil {
		return err
	}
	archives, err := writeArchives(opts)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return writeKrewManifest(opts, archives) },
		func() error { return writeManifests(opts, image.digest) },
		func() error { return writeChart(opts, image.digest) },
		func() error { return writeBills(opts, licences, image, archives) },
		func() error { return writeNotes(opts, image.digest) },
		func() error { return writeSums(opts.out) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
