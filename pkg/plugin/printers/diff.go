// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// diffContext is how many lines that stay are shown around each change.
const diffContext = 3

// Diff shows how an object would change, as a unified diff of YAML. Either object may be nil, for none. What the API
// server writes for itself is left out. It reports whether there is a difference.
func Diff(to io.Writer, palette Palette, name string, before, after *unstructured.Unstructured, by string) (bool, error) {
	old, err := lines(before)
	if err != nil {
		return false, err
	}
	changed, err := lines(after)
	if err != nil {
		return false, err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: old, B: changed, FromFile: printable.Text(name + " as it is"), ToFile: printable.Text(name + " by " + by), Context: diffContext,
	})
	if err != nil || text == "" {
		return false, err
	}
	for line := range strings.Lines(text) {
		content := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			content = palette.Bold(content)
		case strings.HasPrefix(line, "-"):
			content = palette.Removed(content)
		case strings.HasPrefix(line, "+"):
			content = palette.Added(content)
		case strings.HasPrefix(line, "@@"):
			content = palette.Dim(content)
		default:
			content = printable.Text(content)
		}
		if _, err := fmt.Fprintln(to, content); err != nil {
			return true, err
		}
	}
	return true, nil
}

// lines returns those of the object as YAML, each with its newline.
func lines(object *unstructured.Unstructured) ([]string, error) {
	if object == nil {
		return nil, nil
	}
	content := object.DeepCopy().Object
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	text, err := fieldowners.YAML(content)
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.Lines(string(text))), nil
}
