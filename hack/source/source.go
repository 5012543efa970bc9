// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source builds programs from the checkout that this module belongs to.
package source

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the top directory of the checkout.
func Root(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/freehold-dev/freehold")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	dir, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the source: %w\n%s", err, stderr.Bytes())
	}
	return strings.TrimSpace(string(dir)), nil
}

// BuildStatic builds the main package pkg of the module in a directory of the checkout, without C libraries, and
// writes the program to the path output.
func BuildStatic(ctx context.Context, module, pkg, output string) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, module), "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w", "-o", output, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s of %s: %w\n%s", pkg, module, err, text)
	}
	return nil
}
