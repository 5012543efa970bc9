// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shellBlocks are what the documentation shows to be typed.
var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestDocumentation types the commands of the documentation, one after the other, as a user does who reads it beside an
// MCPServer with conflicts.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl-freehold.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, withReplicas()...)
	s.contest(t)
	dir := t.TempDir()
	typed := 0
	for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			// 1 means that there are conflicts or differences, which is no failure.
			out := s.kubectl.Shell(t, "cd "+dir+" && { "+strings.Split(line, " #")[0]+"; [ $? -le 1 ]; }")
			if out == "" && !strings.Contains(line, ">") && !strings.Contains(line, " diff ") {
				t.Errorf("%s prints nothing", line)
			}
			typed++
		}
	}
	if typed < 18 {
		t.Errorf("only %d commands were found", typed)
	}
	for name, want := range map[string]string{"web.html": "<title>Owners of mcpserver", "owners.json": `"path": ".spec.replicas"`} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, without %s", name, err, want)
		}
	}
}
