// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command upstreamdiff prints what changed between two releases of ToolHive that can concern Freehold: the schemas of its
// CustomResourceDefinitions, the rights and settings that its chart gives the operator, the keys of the RunConfig, the
// functions by which its operator and its proxyrunner render, apply and check objects, and what the proxyrunner enforces,
// with what the documentation says about that. It reads nothing but the two published modules. With -full it also prints the
// changed functions themselves, and whole lines of the documentation.
package main

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	from := flag.String("from", "", "release to compare with, such as v0.62.0")
	to := flag.String("to", "", "release to compare, such as v0.63.0")
	full := flag.Bool("full", false, "print the lines that changed in each function")
	flag.Parse()
	if *from == "" || *to == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: upstreamdiff -from=VERSION -to=VERSION [-full]")
		os.Exit(2)
	}
	if err := run(context.Background(), *from, *to, *full); err != nil {
		fmt.Fprintln(os.Stderr, "upstreamdiff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, from, to string, full bool) error {
	older, err := download(ctx, from)
	if err != nil {
		return err
	}
	newer, err := download(ctx, to)
	if err != nil {
		return err
	}
	sections, err := compare(older, newer, full)
	if err != nil {
		return err
	}
	fmt.Printf("# ToolHive %s to %s\n", from, to)
	for _, s := range sections {
		fmt.Printf("\n## %s\n\n", s.title)
		if len(s.lines) == 0 {
			fmt.Println("Nothing changed.")
		}
		for _, line := range s.lines {
			fmt.Println(line)
		}
	}
	return nil
}

// section is one part of the report.
type section struct {
	title string
	lines []string
}

// enforces is the title of what protects MCP servers and their clients. It is the longest section by far.
const enforces = "Proxyrunner: what it enforces (look for security fixes; -full lists new helpers too)"

// isNewHelper reports whether a line is about a new declaration that is not exported. Changed code uses it, which has a line too.
func isNewHelper(line string) bool {
	return strings.HasPrefix(line, "+") && !ast.IsExported(strings.TrimPrefix(path.Ext(line), "."))
}

// compare returns all sections, also those without a line.
func compare(older, newer files, full bool) ([]section, error) {
	schemas, err := compareSchemas(older.under(crds), newer.under(crds))
	if err != nil {
		return nil, err
	}
	keys, err := compareKeys(older, newer)
	if err != nil {
		return nil, err
	}
	sections := []section{
		{"Schemas of the CustomResourceDefinitions (descriptions left out)", schemas},
		{"Chart of the operator: rights, environment, values", compareTexts(older.under(chart), newer.under(chart))},
		{"Keys of the RunConfig", keys},
	}
	for _, part := range []struct {
		title    string
		prefixes []string
	}{
		{"API types and condition reasons of the operator", []string{"cmd/thv-operator/api/"}},
		{"Operator: functions that render and write", []string{"cmd/thv-operator/controllers/mcpserver"}},
		{"Operator: helpers that these use", []string{"cmd/thv-operator/pkg/"}},
		{"Proxyrunner: command and configuration", []string{"cmd/thv-proxyrunner/"}},
		{"Proxyrunner: bodies that it applies to the API server", []string{"pkg/container/kubernetes/"}},
		{"Proxyrunner: what it makes of a RunConfig", []string{"pkg/runner/"}},
		{enforces, []string{
			"pkg/audit/", "pkg/auth/", "pkg/authserver/", "pkg/authz/", "pkg/bodylimit/", "pkg/mcp/", "pkg/ratelimit/",
			"pkg/telemetry/", "pkg/transport/", "pkg/webhook/",
		}},
	} {
		lines, err := compareFunctions(older.under(part.prefixes...), newer.under(part.prefixes...), full)
		if err != nil {
			return nil, err
		}
		if part.title == enforces && !full {
			lines = slices.DeleteFunc(lines, isNewHelper)
		}
		sections = append(sections, section{part.title, lines})
	}
	return append(sections, section{"Documentation", compareDocs(older.under(docs), newer.under(docs), full)}), nil
}
