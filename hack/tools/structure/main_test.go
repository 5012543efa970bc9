// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"golang.org/x/tools/go/packages"
)

const source = `package p

type Controller struct {
	a, b int
	T
}

type T struct{}

type pass struct{ wake int }

func (p *pass) one() { p.wake = 1 }
func (p pass) two()  { p.wake, p.wake = 2, 3 }

func (c *Controller) forget() { if c.has() { c.has() } }
func (c *Controller) has() bool { return true }
`

func parsed(t *testing.T) *packages.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sync.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &packages.Package{Fset: fset, Syntax: []*ast.File{file}}
}

func TestMeasuresCountWhatTheySay(t *testing.T) {
	p := parsed(t)
	for name, c := range map[string]struct{ got, want int }{
		"methods of pass":       {methods(p, "pass"), 2},
		"methods of Controller": {methods(p, "Controller"), 2},
		"fields of Controller":  {fields(p, "Controller"), 3},
		"calls in forget":       {callsIn(p, "Controller", "forget"), 2},
		"places that set wake":  {assignments(p, "wake"), 3},
		"mentions in files":     {mentions(p, "sync", "wake") + mentions(p, "step_", "wake"), 3},
		"lines of sync.go":      {linesOf(p, "sync.go"), 16},
		"lines of no file":      {linesOf(p, "none.go"), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

func TestWhatIsAboveItsBoundIsNamed(t *testing.T) {
	found := []measure{{"within", 2, 1}, {"above", 3, 1}, {"without a bound", 1, 1}}
	above := show(found, map[string]int{"within": 2, "above": 2})
	if len(above) != 2 || above[0] != "above" || above[1] != "without a bound" {
		t.Errorf("named are %q", above)
	}
}
