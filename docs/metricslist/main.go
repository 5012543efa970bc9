// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricslist writes a Markdown file that lists the metrics which the operator tells: its own, from their
// description, and those of the libraries that it is made of, from the registry after each of them has been used.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/metrics"
)

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // of the election
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metricslist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, got %d", len(args))
	}
	families, err := gather(ctx)
	if err != nil {
		return err
	}
	text, err := document(metrics.Families(), families)
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o644)
}

const head = `<!-- Written by hack/update-docs.sh; edit pkg/metrics or docs/metricslist, not this. -->
# Metrics

The operator tells these on ` + "`/metrics`" + `, in the format of Prometheus. Each replica has its own; only the leader works, so
counters of the others stand still. [monitoring.md](monitoring.md) is about how to scrape them, and about the alerts and
the dashboard that are made of them.

A metric that is ALPHA may be renamed or removed by a minor release, which then says so; one that is STABLE keeps its
name, type and labels. A counter or gauge with labels appears when it has something to tell, unless its description
says otherwise.

## Freehold's own
`

const middle = `
### What the outcomes of freehold_writes_total are

| Outcome | Means |
|---|---|
| ` + "`unchanged`" + ` | the object is as the intent wants it; no request |
| ` + "`held`" + ` | refused before, and the refusal still stands; no request |
| ` + "`created`, `applied`, `claimed`" + ` | an object was made; changed; left as it was while fields changed hands |
| ` + "`deleted`" + ` | an object was deleted, or a pod evicted |
| ` + "`conflict`" + ` | another field manager has another value. Sent again when something changes |
| ` + "`stale`, `moved`, `gone`" + ` | the object was newer than what the operator knew; changed meanwhile; is being deleted. These pass by themselves as a rule |
| ` + "`invalid`, `terminal`, `foreign`" + ` | the API server cannot store it; the body cannot be applied; another owner has an object of that name |
| ` + "`forbidden`, `transient`" + ` | not allowed, or refused by an admission policy; the API server could not answer |

All refusals but ` + "`conflict`" + ` are looked at again with back-off, every ten minutes at the latest, and counted each time;
in between they are ` + "`held`" + `. ` + "`stale`" + ` and ` + "`foreign`" + ` are decided without a request. Those of the last four rows are there from the start, at 0, for each writer and kind that it writes.

## Those of the libraries

They come from client-go and component-base, and bear the names that Kubernetes' own components have them under. The
queue of MCPServers has ` + "`name=\"mcpserver\"`" + `; the lease has the name of ` + "`--leader-elect-resource-name`" + `.
`

const tail = `
Beside these there are what Go (` + "`go_…`" + `) and the kernel (` + "`process_…`" + `) tell of every process.
`

// document renders the file.
func document(own []metrics.Family, gathered []*dto.MetricFamily) (string, error) {
	var text strings.Builder
	text.WriteString(head)
	text.WriteString(cardinality(own))
	for _, f := range own {
		fmt.Fprintf(&text, "\n### %s\n\n%s, %s. %s\n\n| Label | Means | Values |\n|---|---|---|\n", f.Name, f.Type, f.Stability, f.Help)
		for _, l := range f.Labels {
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", l.Name, l.Meaning, values(l.Values))
		}
	}
	text.WriteString(middle)
	text.WriteString("\n| Metric | Type | Labels | Stability | Means |\n|---|---|---|---|---|\n")
	rows := 0
	for _, f := range gathered {
		if isOwn(own, f.GetName()) || ofProcess(f.GetName()) {
			continue
		}
		stability, help, ok := strings.Cut(strings.TrimPrefix(f.GetHelp(), "["), "] ")
		if !ok || !strings.HasPrefix(f.GetHelp(), "[") {
			return "", fmt.Errorf("%s does not say how stable it is: %q", f.GetName(), f.GetHelp())
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n",
			f.GetName(), strings.ToLower(f.GetType().String()), labels(f), stability, cell(help))
		rows++
	}
	if rows == 0 {
		return "", errors.New("no library tells a metric")
	}
	text.WriteString(tail)
	return text.String(), nil
}

// cardinality says which metrics have a series for an MCPServer, and that the others have not.
func cardinality(own []metrics.Family) string {
	var names []string
	for _, f := range own {
		if slices.ContainsFunc(f.Labels, func(l metrics.Label) bool { return l.Name == "namespace" }) {
			names = append(names, "`"+f.Name+"`")
		}
	}
	const rest = "Which MCPServers the figures are about is in their conditions and in the log.\n"
	if len(names) == 0 {
		return "\nNo label names an MCPServer, so the number of series does not depend on how many MCPServers there are.\n" + rest
	}
	return "\nThe labels of " + strings.Join(names, " and ") + " name an MCPServer, or its StatefulSet,\n" +
		"which has the same name; they have a series only for those that their description speaks of. No other metric names MCPServers,\n" +
		"and the label `writer` has only field managers of Freehold, and `none`, as its values: the number of their series does not depend\n" +
		"on how many MCPServers there are. " + rest
}

func isOwn(own []metrics.Family, name string) bool {
	for _, f := range own {
		if f.Name == name {
			return true
		}
	}
	return false
}

// ofProcess tells whether a metric is one that every Go program has. Which ones there are depends on the machine.
func ofProcess(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}

// labels lists the names of a gathered metric's labels.
func labels(f *dto.MetricFamily) string {
	if len(f.GetMetric()) == 0 || len(f.GetMetric()[0].GetLabel()) == 0 {
		return "none"
	}
	var names []string
	for _, pair := range f.GetMetric()[0].GetLabel() {
		names = append(names, "`"+pair.GetName()+"`")
	}
	return strings.Join(names, ", ")
}

func values(of []string) string {
	if of == nil {
		return "any"
	}
	quoted := make([]string, len(of))
	for i, value := range of {
		quoted[i] = "`" + value + "`"
	}
	return strings.Join(quoted, ", ")
}

// cell makes a text fit into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
