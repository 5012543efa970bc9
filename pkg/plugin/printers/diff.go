// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Diff shows how an object would change, as a unified diff of YAML. Either object may be nil, for none. What the API
// server writes for itself is left out. It reports whether there is a difference.
func Diff(to io.Writer, palette Palette, name string, before, after *unstructured.Unstructured, by string) (bool, error) {
	old, err := manifest(before)
	if err != nil {
		return false, err
	}
	changed, err := manifest(after)
	if err != nil {
		return false, err
	}
	text := udiff.Unified(printable.Text(name+" as it is"), printable.Text(name+" by "+by), old, changed)
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
	return text != "", nil
}

// manifest returns the object as YAML; empty for none.
func manifest(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	content := object.DeepCopy().Object
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	text, err := fieldowners.YAML(content)
	return string(text), err
}
