// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command render writes what the benchmark has recorded into the documentation: tables between the lines
//
//	<!-- BEGIN NAME -->
//	<!-- END NAME -->
//
// of a Markdown file, and plots, one SVG file each:
//
//	go run ./bench/render RECORDING SOAK DOCUMENT DIRECTORY
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/freehold-dev/freehold/internal/markers"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: render RECORDING SOAK DOCUMENT DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(recorded, recordedSoak, document, dir string) error {
	r, err := recording.Read(recorded)
	if err != nil {
		return err
	}
	if len(shown(r).Runs) == 0 {
		return fmt.Errorf("%s has no run with %d MCPServers in each namespace, and none with all in one: record one",
			recorded, recording.PerNamespace)
	}
	soak, err := recording.ReadSoak(recordedSoak)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	texts := tables(r)
	texts["soak"], texts["shards"] = soaked(soak), sharded(r, soak)
	renewed, err := replace(string(text), texts)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if err := os.WriteFile(document, []byte(renewed), 0o644); err != nil {
		return err
	}
	for _, p := range plots(r) {
		if err := os.WriteFile(filepath.Join(dir, p.name+".svg"), []byte(p.draw()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replace puts each text between its markers, which the document has once, and no others.
func replace(document string, texts map[string]string) (string, error) {
	renewed, err := markers.Replace(document, texts)
	if err == nil && strings.Count(renewed, "<!-- BEGIN ") != len(texts) {
		err = errors.New("there is a text without markers")
	}
	return renewed, err
}
