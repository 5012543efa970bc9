// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// krewManifest is the name of the plugin's manifest: krew wants that of the plugin.
const krewManifest = "freehold.yaml"

// plugin is what krew reads (krew.googlecontainertools.github.com/v1alpha2), as far as this manifest has it.
type plugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version          string           `json:"version"`
		Homepage         string           `json:"homepage"`
		ShortDescription string           `json:"shortDescription"`
		Description      string           `json:"description"`
		Caveats          string           `json:"caveats"`
		Platforms        []pluginPlatform `json:"platforms"`
	} `json:"spec"`
}

type pluginPlatform struct {
	Selector *metav1.LabelSelector `json:"selector"`
	URI      string                `json:"uri"`
	Sha256   string                `json:"sha256"`
	Bin      string                `json:"bin"`
}

// writeKrewManifest fills in the template of deploy/krew, and checks the result.
func writeKrewManifest(opts options, archives []pluginArchive) error {
	source, err := os.ReadFile(filepath.Join(opts.root, "deploy", "krew", krewManifest))
	if err != nil {
		return err
	}
	parsed, err := template.New(krewManifest).Option("missingkey=error").Parse(string(source))
	if err != nil {
		return err
	}
	type entry struct{ OS, Arch, URI, SHA256, Program string }
	data := struct {
		Version   string
		Platforms []entry
	}{Version: opts.version}
	for _, a := range archives {
		uri := fmt.Sprintf("%s/releases/download/%s/%s", website, opts.version, a.name)
		data.Platforms = append(data.Platforms, entry{a.os, a.arch, uri, a.sha256, a.program})
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, data); err != nil {
		return err
	}
	if err := checkKrewManifest(filled.Bytes(), opts); err != nil {
		return fmt.Errorf("deploy/krew/%s: %w", krewManifest, err)
	}
	return os.WriteFile(filepath.Join(opts.out, krewManifest), filled.Bytes(), 0o644)
}

var (
	hexadecimal  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	safeForNames = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// checkKrewManifest reports what krew would not accept in a manifest: first by its own validation, then by an
// installation for each of the platforms. Archives are looked for in the output, by the last part of their address.
func checkKrewManifest(text []byte, opts options) error {
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return err
	}
	spec := p.Spec
	if _, err := version.ParseSemantic(spec.Version); err != nil {
		return err
	}
	switch {
	case p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin":
		return fmt.Errorf("it is a %s of %s", p.Kind, p.APIVersion)
	case p.Name+".yaml" != krewManifest || !safeForNames.MatchString(p.Name):
		return fmt.Errorf("the plugin's name is %q, its file's %s", p.Name, krewManifest)
	case spec.Version != opts.version || !strings.HasPrefix(spec.Version, "v"):
		return fmt.Errorf("its version is %q, want %s", spec.Version, opts.version)
	// krew search cuts what is longer.
	case spec.ShortDescription == "" || len(spec.ShortDescription) > 50 || strings.ContainsAny(spec.ShortDescription, "\r\n"):
		return fmt.Errorf("the short description is %q, want one line of at most 50 bytes", spec.ShortDescription)
	case spec.Description == "" || spec.Homepage == "":
		return errors.New("a description and a homepage are needed")
	case len(spec.Platforms) == 0:
		return errors.New("it has no platform")
	}
	for line := range strings.SplitSeq(spec.Description+"\n"+spec.Caveats, "\n") {
		if len(line) > 80 {
			return fmt.Errorf("a line of more than 80 bytes: %q", line)
		}
	}
	used := make([]int, len(spec.Platforms))
	for _, wanted := range opts.platforms {
		var fitting []int
		for i, candidate := range spec.Platforms {
			fits, err := candidate.fits(wanted)
			if err != nil {
				return err
			}
			if fits {
				fitting = append(fitting, i)
			}
		}
		if len(fitting) != 1 {
			return fmt.Errorf("%d entries fit %s, want 1", len(fitting), wanted)
		}
		used[fitting[0]]++
		if err := spec.Platforms[fitting[0]].check(wanted, opts.out); err != nil {
			return fmt.Errorf("%s: %w", wanted, err)
		}
	}
	for i, count := range used {
		if count != 1 {
			return fmt.Errorf("the entry %s is for %d of the platforms, want 1", spec.Platforms[i].URI, count)
		}
	}
	return nil
}

// fits reports whether krew installs this on a platform.
func (p pluginPlatform) fits(on platform) (bool, error) {
	if p.Selector == nil || len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions) == 0 {
		return false, fmt.Errorf("%s: it has no selector", p.URI)
	}
	for key := range p.Selector.MatchLabels {
		if key != "os" && key != "arch" {
			return false, fmt.Errorf("%s: krew does not select by %q", p.URI, key)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Selector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set{"os": on.os, "arch": on.arch}), nil
}

// check installs the archive, as far as that can be done without krew: checksum, files, and the program for the platform.
func (p pluginPlatform) check(on platform, directory string) error {
	if !strings.HasPrefix(p.URI, "https://") || !hexadecimal.MatchString(p.Sha256) || p.Bin == "" {
		return fmt.Errorf("address %q, checksum %q, program %q", p.URI, p.Sha256, p.Bin)
	}
	data, err := os.ReadFile(filepath.Join(directory, path.Base(p.URI)))
	if err != nil {
		return err
	}
	if got := sum(data); got != p.Sha256 {
		return fmt.Errorf("%s has the checksum %s, the manifest says %s", path.Base(p.URI), got, p.Sha256)
	}
	files, err := unpack(data)
	if err != nil {
		return err
	}
	modes := map[string]int64{}
	for _, f := range files {
		modes[f.name] = f.mode
	}
	if modes[p.Bin]&0o111 == 0 || modes["LICENSE"] == 0 || modes[licenceList] == 0 || len(modes) != 3 {
		return fmt.Errorf("%s has the files %v, want the program %s and its licences", path.Base(p.URI), modes, p.Bin)
	}
	program := files[slices.IndexFunc(files, func(f file) bool { return f.name == p.Bin })]
	build, err := buildinfo.Read(bytes.NewReader(program.data))
	if err != nil {
		return err
	}
	return checkBuild(build, on)
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
