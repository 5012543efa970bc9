// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

const (
	// longestMatcher is the length in bytes up to which the proxyrunner compiles an expression, the default of toolhive-core v0.0.58.
	longestMatcher = 10000
	// mostCollections is how many lists, maps and macros such as exists and map an expression with macros may have, counted after the
	// macros are expanded; map makes three of one. The proxyrunner has no such limit. But the types of nested ones grow with each other,
	// and some expressions of 3,000 bytes take a minute to compile.
	mostCollections = 100
	// longestMatcherError is how much of the compiler's message is shown; it may quote the expression.
	longestMatcherError = 200
)

// matchers is what the proxyrunner compiles an actorMatcher in: the standard functions, and the claims of a token.
var matchers = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("claims", cel.MapType(cel.StringType, cel.DynType)))
})

// compileMatcher compiles an actorMatcher as the proxyrunner does, which exits if it cannot, up to mostCollections. It returns
// the type of the result: the proxyrunner takes any, and refuses each token unless the result is a bool. wrong goes on from the
// path of the field; it is empty if the expression compiles.
func compileMatcher(expression string) (result *cel.Type, wrong string) {
	if len(expression) > longestMatcher {
		return nil, fmt.Sprintf("is longer than %d bytes. Shorten it.", longestMatcher)
	}
	env, err := matchers()
	if err != nil {
		return nil, fmt.Sprintf("cannot be compiled: %v.", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, matcherError(issues)
	}
	if collections(parsed) > mostCollections {
		return nil, "nests too many lists, maps and macros. Simplify it."
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, matcherError(issues)
	}
	if _, err := env.Program(checked); err != nil {
		return nil, fmt.Sprintf("cannot be evaluated as a CEL expression: %s.", shortened(err.Error()))
	}
	return checked.OutputType(), ""
}

// collections counts what mostCollections limits; 0 without macros.
func collections(parsed *cel.Ast) (count int) {
	macros := 0
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			macros++
			count++
		case ast.ListKind, ast.MapKind:
			count++
		}
	}))
	if macros == 0 {
		return 0
	}
	return count
}

// matcherError is about the first thing that the compiler found.
func matcherError(issues *cel.Issues) string {
	first := issues.Errors()[0]
	// Columns are counted from 0.
	return fmt.Sprintf("is not a CEL expression over claims: line %d, column %d: %s.",
		first.Location.Line(), first.Location.Column()+1, shortened(first.Message))
}

// shortened returns a message of the compiler in one line.
func shortened(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if runes := []rune(message); len(runes) > longestMatcherError {
		message = string(runes[:longestMatcherError]) + "…"
	}
	return message
}

// neverMatches reports whether no token can satisfy an actorMatcher that compiles: its result is not a bool, whatever the claims are.
func neverMatches(expression string) bool {
	result, wrong := compileMatcher(expression)
	return wrong == "" && !result.IsAssignableType(cel.BoolType)
}
