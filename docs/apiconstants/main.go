// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apiconstants prints, in Markdown, what an API reference that is made of types leaves out: the types of
// conditions and the annotations, which are constants. What it says of each is the constant's comment.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apiconstants:", err)
		os.Exit(1)
	}
}

// section is a part of the reference.
type section struct {
	title, introduction string
	// packages are directories below the root of the module; what lies below them belongs to them.
	packages []string
	// has tells which constants belong to it.
	has func(constant) bool
}

// prefix is that of Freehold's own annotations.
const prefix = "freehold.dev/"

var sections = []section{
	{
		title: "Conditions",
		introduction: "The types in `status.conditions` that Freehold writes. A type that is not among them is another writer's, " +
			"and is left alone.",
		packages: []string{"apis/toolhive/v1beta1"},
		has:      func(c constant) bool { return strings.HasPrefix(c.name, "Condition") },
	},
	{
		title: "Annotations of Freehold",
		introduction: "[Who owns a field](ownership.md) and [from ToolHive's operator to Freehold](migration.md) tell how those that " +
			"users set are used.",
		packages: []string{"apis", "pkg"},
		has:      func(c constant) bool { return strings.HasPrefix(c.value, prefix) && c.value != prefix },
	},
	{
		title:        "Keys of ToolHive",
		introduction: "The finalizer and the annotations that ToolHive has defined, and that Freehold reads and writes as it does.",
		packages:     []string{"apis/toolhive/v1beta1"},
		has: func(c constant) bool {
			return c.name == "Finalizer" || strings.HasPrefix(c.name, "Annotation")
		},
	},
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the root of the module, got %d", len(args))
	}
	for _, s := range sections {
		found, err := constants(args[0], s.packages)
		if err != nil {
			return err
		}
		entries, err := list(found, s.has)
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		if _, err := fmt.Fprintf(out, "\n## %s\n\n%s\n\n%s", s.title, s.introduction, entries); err != nil {
			return err
		}
	}
	return nil
}
