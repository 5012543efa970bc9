// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
)

const (
	toolHiveModule = "github.com/stacklok/toolhive"
	// toolHiveSum is the module's checksum as go.sum would have it.
	toolHiveSum = "h1:s8Y4Rc4W4ZTj2vmVjCtisZ8SS/qYhzlIlpkaZHo49TI="
)

// toolHiveFile returns a file of ToolHive's module, which Go downloads to its module cache. Nothing of it is built, so the
// Go version that the module requires does not matter: Go reports that as an error beside the archive.
func toolHiveFile(t *testing.T, path string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", toolHiveModule+"@"+toolHiveVersion)
	command.Dir = t.TempDir() // outside of any module, whose go.mod and go.sum this does not concern
	output, err := command.Output()
	var module struct{ Zip, Sum, Error string }
	if jsonErr := json.Unmarshal(output, &module); jsonErr != nil || module.Zip == "" {
		t.Skipf("ToolHive's module cannot be downloaded, so parity with it is not tested: %v %s", err, bytes.TrimSpace(output))
	}
	if module.Sum != toolHiveSum {
		t.Fatalf("the checksum of %s %s is %s, want %s", toolHiveModule, toolHiveVersion, module.Sum, toolHiveSum)
	}
	archive, err := zip.OpenReader(module.Zip)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	file, err := archive.Open(toolHiveModule + "@" + toolHiveVersion + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
