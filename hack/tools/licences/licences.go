// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences that a dependency may have: permissive ones, and none that asks for more than its own text and
// notices to go with a program.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// leastCoverage is how much of a file has to be text of licences that are recognised, in percent. Less of it is text that a
// person has to read.
const leastCoverage = 75

// identify sets the licences of modules, and fails with all that it cannot recognise or that is not allowed.
func identify(modules []*module) error {
	var failures []error
	for _, m := range modules {
		files, err := licenceFiles(m)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			failures = append(failures, fmt.Errorf("%s %s: there is no file with a licence", m.path, m.version))
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found, err := licencesIn(content)
			if err != nil {
				name, relErr := filepath.Rel(m.dir, file)
				if relErr != nil {
					return relErr
				}
				failures = append(failures, fmt.Errorf("%s %s: %s: %w", m.path, m.version, name, err))
			}
			m.licences = append(m.licences, found...)
		}
		slices.Sort(m.licences)
		m.licences = slices.Compact(m.licences)
	}
	return errors.Join(failures...)
}

// licencesIn returns the SPDX identifiers of the licences in a text. It fails where most of it is something else, and where one
// is not allowed.
func licencesIn(text []byte) ([]string, error) {
	coverage := licensecheck.Scan(text)
	var found []string
	for _, match := range coverage.Match {
		if !match.IsURL {
			found = append(found, match.ID)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 || coverage.Percent < leastCoverage {
		return found, fmt.Errorf("%.0f %% of it is text of licences that are known (%s)", coverage.Percent, strings.Join(found, ", "))
	}
	for _, id := range found {
		if !slices.Contains(allowed, id) {
			return found, fmt.Errorf("%s is not among the licences that are allowed: %s", id, strings.Join(allowed, ", "))
		}
	}
	return found, nil
}

// page returns the list as Markdown.
func page(modules []*module) string {
	var b strings.Builder
	b.WriteString(`<!-- Written by hack/update-licences.sh: edit nothing here. -->
# Licences of dependencies

Freehold is under the Apache License 2.0 ([LICENSE](LICENSE)). The modules below are compiled into its programs, on any of the
platforms that they are built for; licences are named by their [SPDX identifiers](https://spdx.org/licenses/). Where a module has more than
one, different parts of it are under different licences. What only tests and tools use is not listed.

| Module | Version | Licence |`)
	for _, program := range programs {
		fmt.Fprintf(&b, " %s |", program.column)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(programs)) + "\n")
	for _, m := range modules {
		version := m.version
		if version == "" {
			version = "of the Go that builds"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", m.path, version, strings.Join(m.licences, ", "))
		for _, program := range programs {
			mark := ""
			if m.programs[program.name] {
				mark = "yes"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
