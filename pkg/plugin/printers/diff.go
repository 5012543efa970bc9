// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Differences is the answer of diff, for programs as well. Names and meanings of its fields stay; more may come.
type Differences struct {
	Differences []Difference `json:"differences"`
	// Notes are differences that no dry run shows, and why something is not written.
	Notes      []string `json:"notes,omitempty"`
	NotChecked []string `json:"notChecked,omitempty"`
}

// Difference is how an object of an MCPServer would change.
type Difference struct {
	Namespace string `json:"namespace"`
	Server    string `json:"server"`
	Object    string `json:"object"`
	// Writer would write it; deletion for an object that would be deleted.
	Writer string `json:"writer"`
	Diff   string `json:"diff"`
}

// Any reports whether there is a difference.
func (d Differences) Any() bool { return len(d.Differences)+len(d.Notes) > 0 }

// Print shows the differences for humans, who have seen the notes.
func (d Differences) Print(to io.Writer, palette Palette, _ time.Time, _ bool) error {
	if !d.Any() {
		return Nothing(to, "differences", len(d.NotChecked) == 0)
	}
	for _, difference := range d.Differences {
		for line := range strings.Lines(difference.Diff) {
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
				return err
			}
		}
	}
	return nil
}

// Unified returns a unified diff of two objects as YAML, without what the API server writes for itself. Either may be nil, for none.
func Unified(name string, before, after *unstructured.Unstructured, by string) (string, error) {
	old, err := manifest(before)
	if err != nil {
		return "", err
	}
	changed, err := manifest(after)
	return udiff.Unified(printable.Text(name+" as it is"), printable.Text(name+" by "+by), old, changed), err
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
