// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	toolHive = "github.com/stacklok/toolhive"
	// crds, chart and docs are folders of ToolHive's module.
	crds  = "deploy/charts/operator-crds/files/crds/"
	chart = "deploy/charts/operator/"
	docs  = "docs/"
)

// files are texts by their paths in a module.
type files map[string]string

// under returns the files below folders, or whose paths begin as given.
func (f files) under(prefixes ...string) files {
	found := files{}
	for path, text := range f {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			found[path] = text
		}
	}
	return found
}

// download returns the files of a release that are compared. Go keeps the module in its cache; nothing of it is built, so
// it does not matter which version of Go it requires, which Go reports as an error beside the archive.
func download(ctx context.Context, version string) (files, error) {
	dir, err := os.MkdirTemp("", "upstreamdiff")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", toolHive+"@"+version)
	command.Dir = dir // outside of any module
	output, err := command.Output()
	var module struct{ Zip, Error string }
	if jsonErr := json.Unmarshal(output, &module); jsonErr != nil || module.Zip == "" {
		return nil, fmt.Errorf("cannot download %s %s: %w %s%s", toolHive, version, err, module.Error, bytes.TrimSpace(output))
	}
	return unpack(module.Zip, toolHive+"@"+version+"/")
}

// unpack reads the files of an archive that are compared, without a prefix of their paths.
func unpack(archive, prefix string) (files, error) {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	found := files{}
	for _, file := range reader.File {
		path, ok := strings.CutPrefix(file.Name, prefix)
		if !ok || !compared(path) {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(content)
		_ = content.Close()
		if err != nil {
			return nil, err
		}
		found[path] = string(text)
	}
	return found, nil
}

// compared reports whether a file is of interest.
func compared(path string) bool {
	switch {
	case strings.HasPrefix(path, crds), strings.HasPrefix(path, chart):
		return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".tpl")
	case strings.HasPrefix(path, docs):
		return strings.HasSuffix(path, ".md") && strings.Count(path, "/") == 1
	case strings.HasSuffix(path, "_test.go"), strings.Contains(path, "/mocks/"), strings.Contains(path, "/zz_generated"):
		return false
	}
	return strings.HasSuffix(path, ".go")
}
