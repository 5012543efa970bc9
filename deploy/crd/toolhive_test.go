// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const toolHiveModule = "github.com/stacklok/toolhive"

// toolHiveSums are the checksums of the module's releases as go.sum would have them.
var toolHiveSums = map[string]string{
	toolHiveVersion: "h1:DiZPVaTjVB7IOFR5mhME2M6kn/2VwacrPZqnsShmcmo=",
	"v0.47.0":       "h1:2GBpOHfuQg/1j0gK26iwvn8/qKSpfauHBhpnTHTsiO4=",
	"v0.44.0":       "h1:Eq5jxUaU5BpogwOz6aCXKoNWpRmHM0xUjnMVNMXIFSI=",
}

// toolHiveDefinition returns the CustomResourceDefinition that a release of ToolHive has by the name of one of ours.
func toolHiveDefinition(t *testing.T, release, name string) []byte {
	t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	return toolHiveFile(t, release, "deploy/charts/operator-crds/files/crds/"+group+"_"+plural+".yaml")
}

// toolHiveFile returns a file of a release of ToolHive's module, which Go downloads to its module cache. Nothing of it is built, so
// the Go version that the module requires does not matter: Go reports that as an error beside the archive.
func toolHiveFile(t *testing.T, release, path string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", toolHiveModule+"@"+release)
	command.Dir = t.TempDir() // outside of any module, whose go.mod and go.sum this does not concern
	output, err := command.Output()
	var module struct{ Zip, Sum, Error string }
	if jsonErr := json.Unmarshal(output, &module); jsonErr != nil || module.Zip == "" {
		t.Skipf("ToolHive's module cannot be downloaded, so its definitions are not compared with ours: %v %s", err, bytes.TrimSpace(output))
	}
	if module.Sum != toolHiveSums[release] {
		t.Fatalf("the checksum of %s %s is %s, want %s", toolHiveModule, release, module.Sum, toolHiveSums[release])
	}
	archive, err := zip.OpenReader(module.Zip)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	file, err := archive.Open(toolHiveModule + "@" + release + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
