// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// readLicences reads the list that hack/update-licences.sh writes: the licences of each module, by its path.
func readLicences(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		// A row begins and ends with a bar. Module, version, licence, and a cell for each program.
		if len(cells) < 6 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		if module, licence := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3]); licence != "" && module != "Module" {
			found[module] = licence
		}
	}
	if found[standardLibrary] == "" {
		return nil, fmt.Errorf("%s has no row for %s", path, standardLibrary)
	}
	return found, nil
}

// everyLicence returns the expression for something that has parts under each of the licences, each named once.
func everyLicence(expressions map[string]bool) string {
	all := map[string]bool{ownLicence: true}
	for expression := range expressions {
		for licence := range strings.SplitSeq(expression, " AND ") {
			all[licence] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " AND ")
}
