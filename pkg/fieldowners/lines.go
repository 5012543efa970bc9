// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/internal/yamlsafe"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// unownable are fields that no manager can own, by their paths.
var unownable = []string{
	".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.creationTimestamp",
	".metadata.deletionTimestamp", ".metadata.deletionGracePeriodSeconds", ".metadata.selfLink", ".metadata.uid",
	".metadata.generation", ".metadata.resourceVersion",
}

// walk goes through an object and its YAML at the same time.
type walk struct {
	report *Report
	// schema is set when the schema says which fields are atomic.
	schema bool
	// starts are the fields that begin on each line.
	starts [][]int
}

// place is a field, or the object, by what is below it: the fields that managers own, and those that the schema has.
type place struct{ owned, known *fieldpath.Set }

// below returns the place of an element.
func (p place) below(element fieldpath.PathElement) place {
	return place{p.owned.WithPrefix(element), p.known.WithPrefix(element)}
}

// item returns the path element of an item of a list. An item of a list of maps is identified by the values of the keys under
// which it is owned, one of a set by its value. Of any other item only its index is known.
func (p place) item(index int, item any) (element fieldpath.PathElement, identified bool) {
	var fitting []fieldpath.PathElement
	for _, set := range []*fieldpath.Set{p.owned, p.known} {
		for _, elements := range []iter.Seq[fieldpath.PathElement]{set.Members.All(), set.Children.All()} {
			for element := range elements {
				if ownership.Identifies(element, item) {
					fitting = append(fitting, element)
				}
			}
		}
	}
	if len(fitting) == 0 {
		return fieldpath.PathElement{Index: &index}, false
	}
	// Of two keys that fit, which a change of a schema can leave behind, it is always the same.
	return slices.MinFunc(fitting, func(a, b fieldpath.PathElement) int { return strings.Compare(a.String(), b.String()) }), true
}

// inherited is what the parts of an atomic field inherit from it.
type inherited struct {
	whole  string
	owners []int
}

// object writes an object as kubectl does, reads where each of its fields begins, and records the owners of each.
func (w *walk) object(content map[string]any, root place) error {
	text, err := YAML(content)
	if err != nil {
		return err
	}
	var document goyaml.Node
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return err
	}
	if len(document.Content) != 1 {
		return errors.New("it is empty")
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	w.starts = make([][]int, len(lines)+1)
	if err := w.below(document.Content[0], content, root, nil, inherited{}); err != nil {
		return err
	}
	var current []int
	for i, line := range lines {
		if begins := w.starts[i+1]; len(begins) > 0 {
			current = begins
		}
		w.report.Lines = append(w.report.Lines, Line{Text: line, Fields: current})
		// What follows on further lines belongs to the last field that began.
		current = current[max(0, len(current)-1):]
	}
	return nil
}

var errNoMatch = errors.New("the YAML is not that of the object")

// below goes through the fields of a map or the items of a list.
func (w *walk) below(text *goyaml.Node, content any, in place, path fieldpath.Path, from inherited) error {
	switch content := content.(type) {
	case map[string]any:
		if text.Kind != goyaml.MappingNode || len(text.Content) != 2*len(content) {
			return errNoMatch
		}
		for i := 0; i < len(text.Content); i += 2 {
			name := text.Content[i].Value
			value, ok := content[name]
			if !ok {
				return errNoMatch
			}
			element := fieldpath.PathElement{FieldName: &name}
			if err := w.field(text.Content[i].Line, text.Content[i+1], value, in, slices.Concat(path, fieldpath.Path{element}), from); err != nil {
				return err
			}
		}
	case []any:
		if text.Kind != goyaml.SequenceNode || len(text.Content) != len(content) {
			return errNoMatch
		}
		for i, item := range text.Content {
			element, identified := in.item(i, content[i])
			of := in
			if !identified {
				of = place{fieldpath.NewSet(), fieldpath.NewSet()}
			}
			if err := w.field(item.Line, item, content[i], of, slices.Concat(path, fieldpath.Path{element}), from); err != nil {
				return err
			}
		}
	}
	return nil
}

// field records one field of a place and goes on below it.
func (w *walk) field(line int, text *goyaml.Node, content any, in place, path fieldpath.Path, from inherited) error {
	f := Field{Path: path.String(), Location: path, Leaf: isLeaf(content)}
	if f.Leaf {
		f.Value = content
	}
	element := path[len(path)-1]
	below := in.below(element)
	if in.owned.Members.Has(element) {
		f.Owners = w.report.holders(path)
	}
	// An atomic list, map or struct is owned as one. The schema says so, where there is one. Without it such a field is recognised by
	// its owners: none of them owns only a part of it.
	whole := len(f.Owners) > 0 && below.owned.Empty()
	if w.schema {
		whole = in.known.Members.Has(element) && below.known.Empty()
	}
	inside := inherited{f.Path, f.Owners}
	if len(f.Owners) == 0 {
		f.Owners, f.Whole = from.owners, from.whole
	}
	switch {
	case len(f.Owners) > 0:
		f.State = Owned
	case slices.Contains(unownable, f.Path):
		f.State = Unownable
	case !f.Leaf && (!below.owned.Empty() || !whole):
		f.State = Container
	default:
		f.State = Unowned
	}
	if line >= len(w.starts) {
		return errNoMatch
	}
	w.starts[line] = append(w.starts[line], len(w.report.Fields))
	w.report.Fields = append(w.report.Fields, f)
	if f.Leaf {
		return nil
	}
	if whole {
		from = inside
	}
	return w.below(text, content, below, path, from)
}

func isLeaf(content any) bool {
	switch content := content.(type) {
	case map[string]any:
		return len(content) == 0
	case []any:
		return len(content) == 0
	default:
		return true
	}
}

// YAML returns content as YAML. It escapes characters that JSON allows and YAML does not, so that one such character in a
// user's value does not hide the rest.
func YAML(content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(yamlsafe.Escape(text))
}
