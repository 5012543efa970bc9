// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// completion is the script by which kubectl completes the plugin's commands. Windows runs none.
const completion = "kubectl_complete-freehold"

// licenceList names the licences of the modules that are compiled in.
const licenceList = "THIRD_PARTY_LICENCES.md"

// pluginArchive is the archive that a user of the plugin downloads.
type pluginArchive struct {
	platform
	// name of the file, and of the program in it.
	name, program string
	// sha256 of the file, in hexadecimal.
	sha256 string
}

// writeArchives packs the plugin for each platform, with its licences and what completes its commands.
func writeArchives(opts options) ([]pluginArchive, error) {
	var all []pluginArchive
	for _, p := range opts.platforms {
		path := p.file(opts.binaries, pluginName)
		if _, err := readBuild(path, p); err != nil {
			return nil, err
		}
		modes := map[string]int64{path: 0o755, filepath.Join(opts.root, "LICENSE"): 0o644, filepath.Join(opts.root, licenceList): 0o644}
		if p.os != "windows" {
			modes[filepath.Join(opts.root, "deploy", "krew", completion)] = 0o755
		}
		var files []file
		for path, mode := range modes {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, file{filepath.Base(path), mode, data})
		}
		data, err := pack(opts.created, files)
		if err != nil {
			return nil, err
		}
		a := pluginArchive{
			platform: p, name: fmt.Sprintf("%s_%s_%s_%s.tar.gz", pluginName, opts.version, p.os, p.arch), program: filepath.Base(path),
			sha256: sum(data),
		}
		if err := os.WriteFile(filepath.Join(opts.out, a.name), data, 0o644); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// file is one file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// pack makes a compressed archive in which nothing depends on where and when it is made: files belong to root, are of one
// time and in the order of their names, and the compressed stream names neither a file nor a time nor a system.
func pack(modified time.Time, files []file) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: modified, Format: tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// readBuild reads what a program records about its build, and refuses one that is not as it is to be released.
func readBuild(path string, p platform) (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(path)
	if err == nil {
		err = checkBuild(info, p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return info, nil
}

func checkBuild(info *buildinfo.BuildInfo, p platform) error {
	if info.Main.Path != project {
		return fmt.Errorf("built from the module %q, not from %s", info.Main.Path, project)
	}
	want := map[string]string{"GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0", "-trimpath": "true"}
	for _, setting := range info.Settings {
		if want[setting.Key] == setting.Value {
			delete(want, setting.Key)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("not built with %v", want)
	}
	return nil
}

// sum returns a SHA-256 in hexadecimal.
func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
