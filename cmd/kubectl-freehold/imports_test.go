// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The libraries of a command line tool are the plugin's alone: neither the operator nor the packages that others import
// depend on them.
func TestNobodyElseImportsOurLibraries(t *testing.T) {
	const module = "github.com/freehold-dev/freehold/"
	for _, packages := range []string{"cmd/freehold", "apis/...", "pkg/ownership/...", "pkg/apply/...", "pkg/render/...", "generated/..."} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+packages).Output()
		if err != nil {
			t.Fatalf("%s: %v", packages, err)
		}
		imported := strings.Fields(string(out))
		if len(imported) < 10 {
			t.Fatalf("%s imports only %v", packages, imported)
		}
		for _, name := range imported {
			if strings.HasPrefix(name, "k8s.io/cli-runtime") || strings.HasPrefix(name, "sigs.k8s.io/kustomize") || strings.HasPrefix(name, module+"pkg/plugin") {
				t.Errorf("%s imports %s", packages, name)
			}
		}
	}
}
