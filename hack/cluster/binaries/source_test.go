// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSourceIsOfThePinnedVersion(t *testing.T) {
	dir, err := Source(t.Context(), ToolHiveOperator)
	if err != nil {
		t.Fatal(err)
	}
	version, err := Version(ToolHiveOperator)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := filepath.Base(dir), "toolhive@"+version; got != want {
		t.Errorf("the source is in %s, want %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "cmd", "thv-operator", "main.go")); err != nil {
		t.Error(err)
	}
	if _, err := Source(t.Context(), "no-such-tool"); err == nil {
		t.Error("an unknown tool has a source")
	}
}
