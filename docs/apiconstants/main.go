// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apiconstants prints, in Markdown, the constants that an API reference of types leaves out: the types and reasons of
// conditions, the reasons of events, the annotations and the labels. The description of each is the constant's comment.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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
	// has reports whether a constant belongs to it.
	has func(constant) bool
}

// api is the directory of the package that has the constants.
const api = "apis/toolhive/v1beta1"

// named returns a function that reports whether a constant's name begins with the prefix.
func named(prefix string) func(constant) bool {
	return func(c constant) bool { return strings.HasPrefix(c.name, prefix) }
}

// annotation returns a function that reports whether a constant is an annotation of Freehold, or of ToolHive.
func annotation(freeholds bool) func(constant) bool {
	return func(c constant) bool {
		return c.value != v1beta1.AnnotationPrefix && strings.HasPrefix(c.name, "Annotation") &&
			strings.HasPrefix(c.value, v1beta1.AnnotationPrefix) == freeholds
	}
}

var sections = []section{
	{
		title: "Conditions",
		introduction: "The types in `status.conditions` that Freehold writes, on an MCPServer unless they name another kind. Any other type " +
			"belongs to another writer, and Freehold leaves it alone.",
		has: named("Condition"),
	},
	{
		title: "Reasons of conditions",
		introduction: "Each with the conditions that have it, as `Type=Status`. `Stalled=True` repeats the reason of an invalid spec, of a " +
			"refused write, or of a stuck rollout; `Ready=False` repeats that of a refused write, and `Reconciling=True` that of " +
			"a delayed one. If the Deployment's condition `Progressing` is False for a reason that is not listed, `Stalled` has that reason.",
		has: named("Reason"),
	},
	{
		title: "Reasons of events",
		introduction: "Those of events that no condition reports. When a condition reports a problem, and when a takeover begins or " +
			"ends, an event has the condition's reason and message.",
		has: named("EventReason"),
	},
	{
		title: "Annotations of Freehold",
		introduction: "[Who owns a field](ownership.md), [rollouts](rollouts.md) and [from ToolHive's operator to Freehold](migration.md) " +
			"explain how to use the annotations that users set.",
		has: annotation(true),
	},
	{
		title:        "Keys of ToolHive",
		introduction: "The finalizers and the annotations that ToolHive defines. Freehold reads and writes them as ToolHive does.",
		has:          func(c constant) bool { return named("Finalizer")(c) || annotation(false)(c) },
	},
	{
		title:        "Labels",
		introduction: "ToolHive defines the labels of the children. Freehold sets them as ToolHive does.",
		has:          named("Label"),
	},
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the root of the module, got %d", len(args))
	}
	found, err := constants(filepath.Join(args[0], api))
	if err != nil {
		return err
	}
	for _, s := range sections {
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
