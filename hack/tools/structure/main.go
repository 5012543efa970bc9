// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command structure measures how much a reader of one sync has to hold in mind, prints the measures, and fails if one is above the bound
// that it has reached. A change that lowers a measure lowers its bound in bounds.json; the flag -write does that.
//
//	structure [-write] ROOT
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/static"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const (
	module     = "github.com/freehold-dev/freehold"
	controller = module + "/pkg/controller"
	apply      = module + "/pkg/apply"
)

// controllerSide are the packages of the operator that know when something is done, and not what.
var controllerSide = []string{"pkg/controller", "pkg/configcontroller", "pkg/priorityqueue", "pkg/workload"}

// measure is one number about the structure of the code.
type measure struct {
	name string
	// now is the number, and aim is what it is to reach.
	now, aim int
}

// bound is the largest number that a measure may have.
type bound struct {
	Measure string `json:"measure"`
	Most    int    `json:"most"`
}

func main() {
	write := flag.Bool("write", false, "lower the bounds to the present numbers")
	flag.Parse()
	if err := run(flag.Arg(0), *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, write bool) error {
	found, err := measures(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "hack", "tools", "structure", "bounds.json")
	bounds, err := readBounds(path)
	if err != nil {
		return err
	}
	above := show(found, bounds)
	if write {
		return writeBounds(path, found, bounds)
	}
	if len(above) > 0 {
		return fmt.Errorf("above the bound: %s. Change a concept in place of adding to it; if the number has to grow, say why where you raise the bound in %s",
			strings.Join(above, ", "), path)
	}
	return nil
}

func readBounds(path string) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []bound
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	bounds := map[string]int{}
	for _, b := range list {
		bounds[b.Measure] = b.Most
	}
	return bounds, nil
}

func writeBounds(path string, found []measure, before map[string]int) error {
	list := make([]bound, 0, len(found))
	for _, m := range found {
		most, known := before[m.name]
		if !known {
			most = m.now
		}
		list = append(list, bound{m.name, min(most, m.now)})
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// show prints the measures, and returns the names of those that are above their bounds, or have none.
func show(found []measure, bounds map[string]int) (above []string) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURE\tNOW\tBOUND\tTO REACH")
	for _, m := range found {
		most, known := bounds[m.name]
		if !known || m.now > most {
			above = append(above, m.name)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", m.name, m.now, most, m.aim)
	}
	table.Flush()
	return above
}

func measures(root string) ([]measure, error) {
	config := &packages.Config{
		Dir: root, Mode: packages.LoadSyntax | packages.NeedModule,
		BuildFlags: []string{"-tags=fieldsv1string,grpcnotrace"},
	}
	loaded, err := packages.Load(config, "./pkg/...", "./cmd/...")
	if err != nil {
		return nil, err
	}
	byPath := map[string]*packages.Package{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		byPath[p.PkgPath] = p
	}
	of := byPath[controller]
	// What concerns all passes is a struct of its own, which Controller embeds.
	passMethods, controllerMethods := methods(of, "pass"), methods(of, "Controller")+methods(of, "process")
	functions, files, err := reached(loaded)
	if err != nil {
		return nil, err
	}
	side, all := 0, 0
	for _, p := range loaded {
		n := lines(p)
		all += n
		if isControllerSide(p.PkgPath) {
			side += n
		}
	}
	return []measure{
		{"lines of sync.go", linesOf(of, "sync.go"), 150},
		{"lines of serverstate.go", linesOf(of, "serverstate.go"), 150},
		{"methods of pass", passMethods, 0},
		{"methods of Controller", controllerMethods, 20},
		{"fields of Controller", fields(of, "Controller") - 1 + fields(of, "process"), 12},
		{"calls in forget", callsIn(of, "process", "forget"), 1},
		{"places that set when to wake", assignments(of, "wake"), 1},
		{"mentions of the applier in steps", mentions(of, "step_", "applier"), 0},
		{"fields of apply.Request", fields(byPath[apply], "Request"), 8},
		{"functions that one sync reaches", functions, 242},
		{"files that one sync reaches", files, 35},
		{"lines on the controller's side", side, 7200},
		{"lines of cmd and pkg", all, 39500},
	}, nil
}

// lines counts the lines of the files of a package that are neither tests nor generated.
func lines(p *packages.Package) (n int) {
	for _, file := range p.Syntax {
		if !ast.IsGenerated(file) {
			n += p.Fset.Position(file.FileEnd).Line
		}
	}
	return n
}

func linesOf(p *packages.Package, name string) int {
	for _, file := range p.Syntax {
		if at := p.Fset.Position(file.FileEnd); filepath.Base(at.Filename) == name {
			return at.Line
		}
	}
	return 0
}

// receiver returns the name of the type whose method a function is; empty for none.
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	of := decl.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func methods(p *packages.Package, of string) (n int) {
	each(p, func(node ast.Node) {
		if decl, ok := node.(*ast.FuncDecl); ok && receiver(decl) == of {
			n++
		}
	})
	return n
}

// fields counts the fields of a struct, embedded ones included.
func fields(p *packages.Package, of string) (n int) {
	each(p, func(node ast.Node) {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != of {
			return
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				n += max(1, len(field.Names))
			}
		}
	})
	return n
}

// callsIn counts the calls of other functions in a method, each as often as it is written.
func callsIn(p *packages.Package, of, method string) (n int) {
	each(p, func(node ast.Node) {
		decl, ok := node.(*ast.FuncDecl)
		if !ok || receiver(decl) != of || decl.Name.Name != method {
			return
		}
		ast.Inspect(decl.Body, func(node ast.Node) bool {
			if _, ok := node.(*ast.CallExpr); ok {
				n++
			}
			return true
		})
	})
	return n
}

// mentions counts the selectors of a name in the files whose names begin so.
func mentions(p *packages.Package, files, name string) (n int) {
	for _, file := range p.Syntax {
		if !strings.HasPrefix(filepath.Base(p.Fset.Position(file.FileEnd).Filename), files) {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == name {
				n++
			}
			return true
		})
	}
	return n
}

// assignments counts the places that set a field of that name.
func assignments(p *packages.Package, field string) (n int) {
	each(p, func(node ast.Node) {
		set, ok := node.(*ast.AssignStmt)
		if !ok {
			return
		}
		for _, to := range set.Lhs {
			if selector, ok := to.(*ast.SelectorExpr); ok && selector.Sel.Name == field {
				n++
			}
		}
	})
	return n
}

func each(p *packages.Package, do func(node ast.Node)) {
	for _, file := range p.Syntax {
		ast.Inspect(file, func(node ast.Node) bool {
			do(node)
			return true
		})
	}
}

// reached counts the functions, and their files, that the sync of an MCPServer reaches in the packages of the controller's side and in
// pkg/apply, by static calls. A function that is used as a value counts as called where it is.
func reached(loaded []*packages.Package) (functions, files int, err error) {
	program, built := ssautil.Packages(loaded, ssa.InstantiateGenerics)
	program.Build()
	var start *ssa.Function
	for i, p := range loaded {
		if p.PkgPath == controller {
			start = methodOf(program, built[i], "process", "sync")
		}
	}
	if start == nil {
		return 0, 0, fmt.Errorf("%s has no method sync of process", controller)
	}
	graph := static.CallGraph(program)
	seen, in := map[string]bool{}, map[string]bool{}
	visited := map[*callgraph.Node]bool{}
	var visit func(node *callgraph.Node)
	visit = func(node *callgraph.Node) {
		if node == nil || visited[node] {
			return
		}
		visited[node] = true
		function := node.Func
		if origin := function.Origin(); origin != nil {
			function = origin
		}
		if counts(function) {
			at := program.Fset.Position(function.Pos())
			seen[fmt.Sprint(at.Filename, ":", at.Line, ":", at.Column)] = true
			in[at.Filename] = true
		}
		for _, edge := range node.Out {
			visit(edge.Callee)
		}
		for _, value := range functionValues(node.Func) {
			visit(graph.Nodes[value])
		}
	}
	visit(graph.Nodes[start])
	visit(graph.Nodes[start.Pkg.Func("init")]) // It has the functions in lists, such as the steps of a pass.
	return len(seen), len(in), nil
}

// functionValues returns the functions that another one uses as values, closures included.
func functionValues(of *ssa.Function) (values []*ssa.Function) {
	var operands []*ssa.Value
	for _, block := range of.Blocks {
		for _, instruction := range block.Instrs {
			for _, operand := range instruction.Operands(operands[:0]) {
				if function, ok := (*operand).(*ssa.Function); ok {
					values = append(values, function)
				}
			}
		}
	}
	return values
}

// counts reports whether a function is a declared one of the packages that are counted.
func counts(function *ssa.Function) bool {
	if function.Object() == nil || function.Package() == nil {
		return false // a closure, or one that the compiler makes
	}
	path := function.Package().Pkg.Path()
	return path == apply || isControllerSide(path)
}

// isControllerSide reports whether a package is one of controllerSide, or below one.
func isControllerSide(path string) bool {
	return slices.ContainsFunc(controllerSide, func(prefix string) bool {
		return path == module+"/"+prefix || strings.HasPrefix(path, module+"/"+prefix+"/")
	})
}

// methodOf returns a method of a type of a package.
func methodOf(program *ssa.Program, of *ssa.Package, name, method string) *ssa.Function {
	typeName := of.Pkg.Scope().Lookup(name)
	if typeName == nil {
		return nil
	}
	selection := types.NewMethodSet(types.NewPointer(typeName.Type())).Lookup(of.Pkg, method)
	if selection == nil {
		return nil
	}
	return program.MethodValue(selection)
}
