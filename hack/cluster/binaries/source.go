// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Source returns the directory with the Go module that the tool is built from, in Go's module cache. It has all the
// files of the module, those besides the program too, of the pinned version and with the pinned content; nothing may
// be written there. It is downloaded when the cache does not have it.
func Source(ctx context.Context, tool Tool) (dir string, err error) {
	r, err := recipeFor(tool)
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp("", "freehold-source-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := r.module.write(scratch); err != nil {
		return "", err
	}
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", r.versionOf)
	download.Dir, download.Env = scratch, append(append(os.Environ(), "GOWORK=off"), r.module.env...)
	output, failed := download.Output()
	var module struct{ Dir, Error string }
	if err := json.Unmarshal(output, &module); err != nil && failed == nil {
		return "", fmt.Errorf("reading what go mod download says: %w", err)
	}
	if module.Error != "" {
		failed = errors.New(module.Error)
	}
	if failed != nil {
		return "", fmt.Errorf("downloading module %s: %w", r.versionOf, failed)
	}
	return module.Dir, nil
}
