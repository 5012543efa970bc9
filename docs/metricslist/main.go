// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricslist writes a Markdown file that lists the metrics which the operator exposes: its own, from their
// descriptions, and those of its libraries, from the registry after each of them has been used.
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

The operator exposes these metrics on ` + "`/metrics`" + `, in the Prometheus format. Each replica has its own. Only the leader
reconciles, so the counters of the other replicas do not change. [monitoring.md](monitoring.md) explains how to scrape the metrics, and
describes the alerts and the dashboard.

A minor release may rename or remove an ALPHA metric, and its release notes then say so. A STABLE metric keeps its name, type and
labels. A counter or gauge with labels appears with its first value, unless its description says otherwise.

## Freehold's own
`

const middle = `
### The outcomes of freehold_writes_total

| Outcome | Means |
|---|---|
| ` + "`unchanged`" + ` | the object already matches the intent; no request |
| ` + "`held`" + ` | an earlier refusal still stands; no request |
| ` + "`created`, `applied`, `claimed`" + ` | an object was created; changed; left unchanged while its fields changed owners |
| ` + "`deleted`" + ` | an object was deleted, or a pod evicted |
| ` + "`conflict`" + ` | another field manager owns a field with another value. Freehold retries when something changes |
| ` + "`stale`, `moved`, `gone`" + ` | the object was newer than the operator's view; changed in the meantime, or its namespace is being deleted; is being deleted itself. These usually pass without action |
| ` + "`invalid`, `terminal`, `foreign`" + ` | the API server cannot store it; the body cannot be applied; another owner has an object of that name |
| ` + "`altered`" + ` | accepted, and stored otherwise than sent: an admission policy or webhook changed it |
| ` + "`undone`" + ` | other clients undo the write again and again; it is made again after a wait |
| ` + "`forbidden`, `transient`" + ` | refused by authorization, a quota or an admission policy; the API server could not answer |

Freehold retries all refusals but ` + "`conflict`" + ` with back-off, at the latest every ten minutes, and counts each retry; in between
they are ` + "`held`" + `. It decides ` + "`stale`" + ` and ` + "`foreign`" + ` without a request, and most conflicts, see
[architecture](architecture.md#the-caches). The outcomes of the last six rows exist from the start, at 0, for each writer and
kind that it writes.

## Metrics of the libraries

These come from client-go and component-base, with the same names as in the components of Kubernetes. The queue of MCPServers has ` + "`name=\"mcpserver\"`" + `; the
lease has the name of ` + "`--leader-elect-resource-name`" + `.
`

const tail = `
The operator also exposes the metrics of Go (` + "`go_…`" + `) and of the process (` + "`process_…`" + `).
`

// document renders the file.
func document(own []metrics.Family, gathered []*dto.MetricFamily) (string, error) {
	var text strings.Builder
	text.WriteString(head)
	text.WriteString(cardinality(own))
	for _, f := range own {
		fmt.Fprintf(&text, "\n### %s\n\n%s, %s. %s\n", f.Name, f.Type, f.Stability, f.Help)
		if len(f.Labels) > 0 {
			text.WriteString("\n| Label | Means | Values |\n|---|---|---|\n")
		}
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
			return "", fmt.Errorf("%s has no stability level: %q", f.GetName(), f.GetHelp())
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n",
			f.GetName(), strings.ToLower(f.GetType().String()), labels(f), stability, cell(help))
		rows++
	}
	if rows == 0 {
		return "", errors.New("no library has a metric")
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
	const rest = "Conditions and the log name the MCPServers that a metric counts.\n"
	if len(names) == 0 {
		return "\nNo label names an MCPServer, so the number of series does not depend on the number of MCPServers.\n" + rest
	}
	return "\nThe labels of " + strings.Join(names, " and ") + " name an MCPServer, or its StatefulSet,\n" +
		"which has the same name. They have a series only for the MCPServers in their description. No other metric names MCPServers,\n" +
		"and the only values of the label `writer` are Freehold's field managers and `none`. So the number of their series does not\n" +
		"depend on the number of MCPServers. " + rest
}

func isOwn(own []metrics.Family, name string) bool {
	for _, f := range own {
		if f.Name == name {
			return true
		}
	}
	return false
}

// ofProcess reports whether a metric is one that every Go program has. The set of these depends on the machine.
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
