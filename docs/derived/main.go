// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command derived writes into files what follows from the tables in the code: from those of field managers and of what MCPServers
// refer to in package managers, and that of children in package inventory. Its arguments are the files. It replaces what is between the lines
//
//	BEGIN NAME
//	END NAME
//
// which are comments of Markdown or of YAML, and keeps their indentation.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// blocks returns the texts by their names.
func blocks() map[string]string {
	children := inventory.Children()
	return map[string]string{
		"who-writes-what":  writersTable(managers.Registry().Writers()),
		"children":         childrenTable(children),
		"rights":           rights(children),
		"config-rights":    configRights(managers.Configs()),
		"cluster-rights":   rightsTable(clusterRights(children, managers.Configs())),
		"other-rights":     otherRightsTable(otherRights()),
		"guarded-configs":  matchingConfigs(managers.Configs()),
		"guarded-children": matching(children, "CREATE", "UPDATE"),
		"watched-children": matching(children, "UPDATE"),
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "derived:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return errors.New("want the files to write into as arguments")
	}
	texts := blocks()
	for _, file := range files {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		renewed, err := replace(string(old), texts)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if bytes.Equal(old, []byte(renewed)) {
			continue
		}
		if err := os.WriteFile(file, []byte(renewed), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replace puts the texts between their markers. A document has at least one of them, and none twice.
func replace(document string, texts map[string]string) (string, error) {
	var out strings.Builder
	done, open := map[string]bool{}, ""
	for line := range strings.Lines(document) {
		begins, isBegin := marker(line, "BEGIN ")
		ends, isEnd := marker(line, "END ")
		text, known := texts[begins]
		switch {
		case isBegin && (open != "" || !known || done[begins]):
			return "", fmt.Errorf("%s is inside of another text, unknown, or there twice", strings.TrimSpace(line))
		case isEnd && ends != open:
			return "", fmt.Errorf("%s is not where %q ends", strings.TrimSpace(line), open)
		case isBegin:
			open, done[begins] = begins, true
			out.WriteString(line)
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			for added := range strings.Lines(text) {
				out.WriteString(indent + added)
			}
		case isEnd:
			open = ""
			out.WriteString(line)
		case open == "":
			out.WriteString(line)
		}
	}
	if open != "" || len(done) == 0 {
		return "", fmt.Errorf("there is nothing to replace, or %q does not end", open)
	}
	return out.String(), nil
}

// marker returns the name of the text that a line begins or ends; ok is false for any other line.
func marker(line, word string) (name string, ok bool) {
	line = strings.TrimSpace(line)
	if inner, found := strings.CutPrefix(line, "<!-- "); found {
		if line, found = strings.CutSuffix(inner, " -->"); !found {
			return "", false
		}
	} else if line, found = strings.CutPrefix(line, "# "); !found {
		return "", false
	}
	name, ok = strings.CutPrefix(line, word)
	return name, ok && !strings.Contains(name, " ")
}
