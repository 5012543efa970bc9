// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Program screens draws pictures of a terminal for the documentation, from what the tests of the plugin recorded of its output:
//
//	go run ./docs/screens RECORDINGS DIRECTORY
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// screen is a picture to draw.
type screen struct {
	// name is that of the picture, without its ending, and recording that of what was recorded.
	name, recording string
	// command is what was typed.
	command string
	// parts are the passages to show. Between two of them a line is left out, which says so.
	parts []part
}

// part is some lines of a recording: count of them, from the first one after the part before that has a text.
type part struct {
	from  string
	count int
}

func screens() []screen {
	return []screen{
		{
			name: "owners", recording: "owners-deployment-coloured", command: "kubectl freehold owners deployment/web",
			parts: []part{{"deployment.apps/web", 14}, {"- name: OPERATOR_OPENSHIFT", 6}},
		},
		{
			name: "conflicts", recording: "conflict-coloured", command: "kubectl freehold conflicts",
			parts: []part{{"mcpserver/web", 5}},
		},
	}
}

// lifelike puts into a line what differs in each run, for which the recordings have one value: UIDs, the name of a namespace, and ages.
var lifelike = strings.NewReplacer(
	"00000000-0000-0000-0000-000000000000", "8c1f0b52-6d4e-4c1a-9f57-2b7d0e3a91c4", "test-ns", "shop",
	"argocd-controller        Apply          30d", "argocd-controller        Apply          29d",
	"kubectl-annotate         Update         30d", "kubectl-annotate         Update         12d",
	"kubectl-set              Update         30d", "kubectl-set              Update         4h ",
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screens RECORDINGS DIRECTORY")
		os.Exit(2)
	}
	for _, s := range screens() {
		recording, err := os.ReadFile(filepath.Join(os.Args[1], s.recording+".golden"))
		if err == nil {
			var lines []string
			if lines, err = s.excerpt(string(recording)); err == nil {
				err = os.WriteFile(filepath.Join(os.Args[2], s.name+".svg"), []byte(draw(lines)), 0o644)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			os.Exit(1)
		}
	}
}

// excerpt returns the lines to show.
func (s screen) excerpt(recording string) (shown []string, err error) {
	shown = append(shown, "$ "+s.command)
	lines := strings.Split(strings.TrimSuffix(recording, "\n"), "\n")
	for i, p := range s.parts {
		begin := 0
		for ; begin < len(lines) && !strings.Contains(lines[begin], p.from); begin++ {
		}
		if begin+p.count > len(lines) {
			return nil, fmt.Errorf("the recording %s has no %d lines from %q on", s.recording, p.count, p.from)
		}
		if i > 0 && begin > 0 {
			shown = append(shown, "⋮")
		}
		for _, text := range lines[begin : begin+p.count] {
			shown = append(shown, lifelike.Replace(text))
		}
		lines = lines[begin+p.count:]
	}
	return shown, nil
}
