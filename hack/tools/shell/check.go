// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A finding is a place in a script and what does not work there.
type finding struct {
	file    string
	pos     syntax.Pos
	message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.file, f.pos.Line(), f.pos.Col(), f.message)
}

// portableComment exempts the line after it from the check of utilities.
var portableComment = regexp.MustCompile(`^portable: \S`)

// check returns the places in a script that do not run with bash 3.2 and the utilities of macOS, in the order of the script.
// It fails if the script is not bash.
func check(name string, source []byte) ([]finding, error) {
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(source), name)
	if err != nil {
		return nil, err
	}
	c := &checker{file: name, filled: filledArrays(file), guarded: guardedExpansions(file), fallbacks: fallbacks(file), exempt: map[uint]bool{}}
	syntax.Walk(file, func(node syntax.Node) bool {
		if comment, ok := node.(*syntax.Comment); ok && portableComment.MatchString(strings.TrimSpace(comment.Text)) {
			c.exempt[comment.Pos().Line()+1] = true
		}
		return true
	})
	syntax.Walk(file, func(node syntax.Node) bool {
		if node != nil {
			c.visit(node)
		}
		return true
	})
	slices.SortStableFunc(c.findings, func(a, b finding) int { return cmp.Compare(a.pos.Offset(), b.pos.Offset()) })
	return slices.CompactFunc(c.findings, func(a, b finding) bool { return a == b }), nil
}

// A checker collects the findings of one script.
type checker struct {
	file string
	// filled are the arrays that never are empty.
	filled map[string]bool
	// guarded are the expansions of an array in ${a[@]+...} of the same array.
	guarded map[*syntax.ParamExp]bool
	// fallbacks are the calls that another one stands in for where they fail.
	fallbacks map[*syntax.CallExpr]bool
	// exempt are the lines where utilities are not checked.
	exempt   map[uint]bool
	findings []finding
}

func (c *checker) report(node syntax.Node, format string, args ...any) {
	c.findings = append(c.findings, finding{file: c.file, pos: node.Pos(), message: fmt.Sprintf(format, args...)})
}

// visit looks at one node; its children are visited by themselves.
func (c *checker) visit(node syntax.Node) {
	switch node := node.(type) {
	case *syntax.ParamExp:
		c.expansion(node)
	case *syntax.CallExpr:
		c.call(node)
	case *syntax.DeclClause:
		c.declaration(node)
	case *syntax.Assign:
		if isNegative(node.Index) {
			c.report(node, "a negative array index: bash 4.3 or newer")
		}
	case *syntax.UnaryTest:
		if node.Op == syntax.TsVarSet || node.Op == syntax.TsRefVar {
			c.report(node, "[[ %s: bash 4.2 or newer; use [[ -n \"${name+set}\" ]]", node.Op)
		}
	case *syntax.BinaryCmd:
		if node.Op == syntax.PipeAll {
			c.report(node, "|&: bash 4.0 or newer; use 2>&1 |")
		}
	case *syntax.Redirect:
		if node.Op == syntax.AppAll {
			c.report(node, "&>>: bash 4.0 or newer; use >>file 2>&1")
		}
		if node.N != nil && strings.HasPrefix(node.N.Value, "{") {
			c.report(node, "%s before a redirection: bash 4.1 or newer; use a number", node.N.Value)
		}
	case *syntax.CoprocClause:
		c.report(node, "coproc: bash 4.0 or newer")
	case *syntax.CaseItem:
		if node.Op != syntax.Break {
			c.report(node, "%s: bash 4.0 or newer", node.Op)
		}
	case *syntax.CmdSubst:
		if node.TempFile || node.ReplyVar {
			c.report(node, "${ command; }: bash 5.3 or newer; use $(command)")
		}
		if !node.Backquotes {
			c.nested(node, "$(...)")
		}
	case *syntax.ProcSubst:
		c.nested(node, "<(...)")
	case *syntax.Word:
		c.braces(node)
	case *syntax.Lit:
		c.escapes(node, node.Value)
	case *syntax.SglQuoted:
		if node.Dollar {
			c.escapes(node, node.Value)
		}
	}
}

// newVariables are those that bash sets, and the version that has them first.
var newVariables = map[string]string{
	"BASHPID": "4.0", "BASH_XTRACEFD": "4.1", "MAPFILE": "4.0", "EPOCHSECONDS": "5.0", "EPOCHREALTIME": "5.0", "SRANDOM": "5.1",
	"BASH_COMPAT": "4.3", "BASH_ARGV0": "5.0",
}

func (c *checker) expansion(node *syntax.ParamExp) {
	if node.Param != nil && newVariables[node.Param.Value] != "" {
		c.report(node, "%s: bash %s or newer", node.Param.Value, newVariables[node.Param.Value])
	}
	if isNegative(node.Index) {
		c.report(node, "a negative array index: bash 4.3 or newer; use ${a[${#a[@]}-1]}")
	}
	if node.Slice != nil && isNegative(node.Slice.Length) {
		c.report(node, "a negative length: bash 4.2 or newer; use ${x%%?}")
	}
	if node.Exp != nil {
		switch node.Exp.Op {
		case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
			c.report(node, "${%s%s}: bash 4.0 or newer; use tr", node.Param.Value, node.Exp.Op)
		case syntax.OtherParamOps:
			c.report(node, "${%s@...}: bash 4.4 or newer; use printf %%q", node.Param.Value)
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			return
		}
	}
	if index := literal(node.Index); (index == "@" || index == "*") && !node.Length && !node.Excl && !c.filled[node.Param.Value] &&
		!c.guarded[node] {
		name := node.Param.Value
		c.report(node, "%[1]s may be empty, which is an error under set -u before bash 4.4; use ${%[1]s[@]+\"${%[1]s[@]}\"}", name)
	}
}

// filledArrays returns the names of the arrays whose every assignment has an element, whatever variables hold.
func filledArrays(file *syntax.File) map[string]bool {
	filled := map[string]bool{}
	empty := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Assign:
			if node.Array == nil || node.Append {
				return true
			}
			if slices.ContainsFunc(node.Array.Elems, func(elem *syntax.ArrayElem) bool { return elem.Value != nil && isOneWord(elem.Value) }) {
				filled[node.Name.Value] = true
			} else {
				empty[node.Name.Value] = true
			}
		case *syntax.CallExpr:
			// read -a leaves an array empty where the line is.
			if commandName(node) == "read" {
				for _, arg := range node.Args[1:] {
					empty[arg.Lit()] = true
				}
			}
		}
		return true
	})
	for name := range empty {
		delete(filled, name)
	}
	return filled
}

func guardedExpansions(file *syntax.File) map[*syntax.ParamExp]bool {
	guarded := map[*syntax.ParamExp]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		guard, ok := node.(*syntax.ParamExp)
		if !ok || guard.Exp == nil || guard.Exp.Word == nil ||
			guard.Exp.Op != syntax.AlternateUnset && guard.Exp.Op != syntax.AlternateUnsetOrNull {
			return true
		}
		syntax.Walk(guard.Exp.Word, func(inner syntax.Node) bool {
			if inner, ok := inner.(*syntax.ParamExp); ok && inner.Param.Value == guard.Param.Value {
				guarded[inner] = true
			}
			return true
		})
		return true
	})
	return guarded
}

// isOneWord reports whether the shell makes at least one word of this one, whatever its variables hold.
func isOneWord(word *syntax.Word) bool {
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			return true
		case *syntax.DblQuoted:
			if len(part.Parts) != 1 {
				return true
			}
			expansion, ok := part.Parts[0].(*syntax.ParamExp)
			if !ok || expansion.Param.Value != "@" && literal(expansion.Index) != "@" {
				return true
			}
		}
	}
	return false
}

// newOptions are the options of declare and its kin that bash 3.2 lacks, with the version that has them first.
var newOptions = map[rune]string{'A': "4.0", 'n': "4.3", 'g': "4.2", 'l': "4.0", 'u': "4.0"}

func (c *checker) declaration(node *syntax.DeclClause) {
	// export -n is as old as bash.
	if node.Variant.Value == "export" {
		return
	}
	for _, arg := range node.Args {
		if !arg.Naked || arg.Value == nil {
			continue
		}
		options := arg.Value.Lit()
		if !strings.HasPrefix(options, "-") && !strings.HasPrefix(options, "+") {
			continue
		}
		for _, option := range options[1:] {
			if version := newOptions[option]; version != "" {
				c.report(arg, "%s -%c: bash %s or newer", node.Variant.Value, option, version)
			}
		}
	}
}

// nested finds what bash 3.2 misreads in a substitution: it looks for the closing parenthesis without parsing what is inside.
func (c *checker) nested(substitution syntax.Node, name string) {
	syntax.Walk(substitution, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CaseClause:
			c.report(node, "case inside of %s, which bash 3.2 takes a pattern's parenthesis to end; put it into a function", name)
		case *syntax.Comment:
			if strings.ContainsAny(node.Text, "'\"`()") {
				c.report(node, "a quote or parenthesis in a comment inside of %s, which bash 3.2 takes for one of the command", name)
			}
		case *syntax.Redirect:
			if node.Hdoc != nil {
				c.report(node, "a here-document inside of %s, which bash 3.2 may misread; put it into a function", name)
			}
		}
		return true
	})
}

// newSequence matches a brace expansion with a step, or with leading zeros.
var newSequence = regexp.MustCompile(`\{(-?[0-9a-zA-Z]+\.\.-?[0-9a-zA-Z]+\.\.-?[0-9]+|-?0[0-9]+\.\.-?[0-9]+|-?[0-9]+\.\.-?0[0-9]+)\}`)

func (c *checker) braces(word *syntax.Word) {
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok && newSequence.MatchString(lit.Value) {
			c.report(word, "%s: steps and leading zeros need bash 4.0 or newer", newSequence.FindString(lit.Value))
		}
	}
}

// unicodeEscape matches \uXXXX and \UXXXXXXXX.
var unicodeEscape = regexp.MustCompile(`\\[uU][0-9a-fA-F]`)

func (c *checker) escapes(node syntax.Node, text string) {
	if _, ok := node.(*syntax.SglQuoted); ok && unicodeEscape.MatchString(text) {
		c.report(node, "%s...: bash 4.2 or newer; write the character itself", unicodeEscape.FindString(text))
	}
}

func isNegative(expr syntax.ArithmExpr) bool {
	switch expr := expr.(type) {
	case *syntax.UnaryArithm:
		return expr.Op == syntax.Minus && !expr.Post
	case *syntax.ParenArithm:
		return isNegative(expr.X)
	case *syntax.Word:
		return strings.HasPrefix(strings.TrimSpace(expr.Lit()), "-")
	}
	return false
}

func literal(expr syntax.ArithmExpr) string {
	if word, ok := expr.(*syntax.Word); ok {
		return word.Lit()
	}
	return ""
}
