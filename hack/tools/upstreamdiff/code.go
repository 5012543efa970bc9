// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path"
	"reflect"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// compareFunctions lists the declarations that came, went or changed, by package and name. Comments and formatting do not
// count.
func compareFunctions(older, newer files, full bool) ([]string, error) {
	before, err := declarations(older)
	if err != nil {
		return nil, err
	}
	after, err := declarations(newer)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range names(before, after) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case !had:
			lines = append(lines, "+ "+name)
		case !has:
			lines = append(lines, "- "+name)
		case was != is:
			lines = append(lines, "~ "+name)
			if full {
				lines = append(lines, strings.Split(strings.TrimSuffix(udiff.Unified(name, name, was, is), "\n"), "\n")...)
			}
		}
	}
	return lines, nil
}

// declarations returns the source text of each function, type, constant and variable, without comments.
func declarations(sources files) (map[string]string, error) {
	found := map[string]string{}
	err := eachFile(sources, func(set *token.FileSet, dir string, file *ast.File) error {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if err := render(found, set, dir+"."+functionName(decl), decl); err != nil {
					return err
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if err := renderSpec(found, set, dir, spec); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	return found, err
}

func renderSpec(found map[string]string, set *token.FileSet, dir string, spec ast.Spec) error {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return render(found, set, dir+"."+spec.Name.Name, spec)
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if err := render(found, set, dir+"."+name.Name, spec); err != nil {
				return err
			}
		}
	}
	return nil
}

func render(found map[string]string, set *token.FileSet, name string, node any) error {
	var text bytes.Buffer
	style := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8} // gofmt's
	if err := style.Fprint(&text, set, node); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// The printer keeps empty lines of the source.
	var lines []string
	for line := range strings.Lines(text.String()) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	found[name] += strings.Join(lines, "") + "\n" // init, and _, may occur several times
	return nil
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// eachFile parses Go files, without their comments.
func eachFile(sources files, do func(set *token.FileSet, dir string, file *ast.File) error) error {
	for _, name := range names(sources, nil) {
		if path.Ext(name) != ".go" {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if err := do(set, path.Dir(name), file); err != nil {
			return err
		}
	}
	return nil
}

// runConfig is the type of the document that the proxyrunner reads.
const runConfig = "pkg/runner.RunConfig"

// compareKeys compares the keys of the RunConfig and of everything within it that ToolHive defines itself.
func compareKeys(older, newer files) ([]string, error) {
	before, err := runConfigKeys(older)
	if err != nil {
		return nil, err
	}
	after, err := runConfigKeys(newer)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, key := range names(before, after) {
		was, had := before[key]
		is, has := after[key]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("+ %s %s", key, is))
		case !has:
			lines = append(lines, fmt.Sprintf("- %s %s", key, was))
		case was != is:
			lines = append(lines, fmt.Sprintf("~ %s %s, was %s", key, is, was))
		}
	}
	return lines, nil
}

// runConfigKeys returns the Go type of each key, by the key's path.
func runConfigKeys(sources files) (map[string]string, error) {
	structs := map[string]*ast.StructType{}
	imports := map[string]map[string]string{}
	err := eachFile(sources, func(_ *token.FileSet, dir string, file *ast.File) error {
		for _, spec := range file.Imports {
			location := strings.Trim(spec.Path.Value, `"`)
			local := path.Base(location)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			if inside, ok := strings.CutPrefix(location, toolHive+"/"); ok {
				if imports[dir] == nil {
					imports[dir] = map[string]string{}
				}
				imports[dir][local] = inside
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if structure, ok := spec.Type.(*ast.StructType); ok {
					structs[dir+"."+spec.Name.Name] = structure
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if structs[runConfig] == nil {
		return nil, fmt.Errorf("there is no type %s any more", runConfig)
	}
	keys := map[string]string{}
	collectKeys(keys, structs, imports, "", runConfig, map[string]bool{})
	return keys, nil
}

func collectKeys(
	keys map[string]string, structs map[string]*ast.StructType, imports map[string]map[string]string,
	at, typeName string, above map[string]bool,
) {
	if above[typeName] {
		return
	}
	above[typeName] = true
	defer delete(above, typeName)
	dir := strings.TrimSuffix(typeName, path.Ext(typeName))
	for _, field := range structs[typeName].Fields.List {
		if field.Tag == nil {
			continue
		}
		key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		var spelled bytes.Buffer
		if err := printer.Fprint(&spelled, token.NewFileSet(), field.Type); err != nil {
			continue
		}
		keys[at+key] = spelled.String()
		if below := structOf(field.Type, dir, imports[dir]); structs[below] != nil {
			collectKeys(keys, structs, imports, at+key+".", below, above)
		}
	}
}

// structOf returns the name of the type that a field, or each item of it, has.
func structOf(expr ast.Expr, dir string, imports map[string]string) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return structOf(expr.X, dir, imports)
	case *ast.ArrayType:
		return structOf(expr.Elt, dir, imports)
	case *ast.MapType:
		return structOf(expr.Value, dir, imports)
	case *ast.Ident:
		return dir + "." + expr.Name
	case *ast.SelectorExpr:
		if pkg, ok := expr.X.(*ast.Ident); ok {
			return imports[pkg.Name] + "." + expr.Sel.Name
		}
	}
	return ""
}
