// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command upstreamdiff prints what changed between two releases of ToolHive that can concern Freehold: the schemas of its
// CustomResourceDefinitions, the rights and settings that its chart gives the operator, the keys of the RunConfig, and the
// functions by which its operator and its proxyrunner render, apply and check objects. It reads nothing but the two
// published modules. With -full it also prints the changed functions themselves.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	from := flag.String("from", "", "release to compare with, such as v0.47.0")
	to := flag.String("to", "", "release to compare, such as v0.62.0")
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
	for _, part := range []struct{ title, prefix string }{
		{"API types and condition reasons of the operator", "cmd/thv-operator/api/"},
		{"Operator: functions that render and write", "cmd/thv-operator/controllers/mcpserver"},
		{"Operator: helpers that these use", "cmd/thv-operator/pkg/"},
		{"Proxyrunner: command and configuration", "cmd/thv-proxyrunner/"},
		{"Proxyrunner: bodies that it applies to the API server", "pkg/container/kubernetes/"},
		{"Proxyrunner: what it makes of a RunConfig", "pkg/runner/"},
	} {
		lines, err := compareFunctions(older.under(part.prefix), newer.under(part.prefix), full)
		if err != nil {
			return nil, err
		}
		sections = append(sections, section{part.title, lines})
	}
	return sections, nil
}
