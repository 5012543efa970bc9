// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// constant is a string constant that is exported, with the first paragraph of its comment.
type constant struct {
	name, value, comment string
	deprecated           bool
}

// constants returns those of the packages at or below a directory, without their tests.
func constants(directory string) ([]constant, error) {
	var found []constant
	err := files(directory, func(_ string, file *ast.File) { found = append(found, constantsOf(file)...) })
	return found, err
}

// files reads the Go files at or below a directory, without the tests.
func files(directory string, visit func(path string, file *ast.File)) error {
	return filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(path, file)
		return nil
	})
}

func constantsOf(file *ast.File) []constant {
	var found []constant
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			comment := spec.Doc.Text()
			if !group.Lparen.IsValid() {
				comment = group.Doc.Text()
			}
			for i, name := range spec.Names {
				if !name.IsExported() || i >= len(spec.Values) {
					continue
				}
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				if value, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, constant{name.Name, value, firstParagraph(comment), strings.Contains(comment, "\n\nDeprecated: ")})
				}
			}
		}
	}
	return found
}

func firstParagraph(comment string) string {
	first, _, _ := strings.Cut(comment, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// list has an item for each constant that belongs to it, sorted by value.
func list(found []constant, belongs func(constant) bool) (string, error) {
	var items []string
	for _, c := range found {
		if !belongs(c) {
			continue
		}
		rest, ok := strings.CutPrefix(c.comment, c.name+" ")
		if !ok {
			return "", fmt.Errorf("the comment of %s does not begin with its name: %q", c.name, c.comment)
		}
		if c.deprecated {
			rest += " Deprecated."
		}
		items = append(items, fmt.Sprintf("- %#q %s\n", c.value, strings.ReplaceAll(rest, "<", "&lt;")))
	}
	if len(items) == 0 {
		return "", errors.New("no constant belongs to it")
	}
	slices.Sort(items)
	return strings.Join(items, ""), nil
}
