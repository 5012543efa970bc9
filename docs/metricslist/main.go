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
	"maps"
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

Each replica of the operator serves these on ` + "`/metrics`" + `, in the Prometheus format. [monitoring.md](monitoring.md) shows how to
scrape them, and has the alerts and the dashboard. Only the leader reconciles, so the counters of other replicas stand still.

A minor release may rename or remove an ALPHA metric; its release notes say so. A STABLE metric keeps its name, type and labels. A
counter or gauge with labels appears with its first value, unless its description says otherwise.

## Freehold's own
`

const middle = `
### The outcomes of freehold_writes_total

| Outcome | Means |
|---|---|
| ` + "`unchanged`" + ` | the object already matches; no request |
| ` + "`held`" + ` | an earlier refusal still stands; no request |
| ` + "`created`, `applied`" + ` | an object was created; changed |
| ` + "`claimed`" + ` | fields changed owners, and no value changed |
| ` + "`deleted`" + ` | an object was deleted, or a pod evicted |
| ` + "`conflict`" + ` | another field manager owns a field with another value. Freehold retries when something changes |
| ` + "`stale`, `moved`" + ` | the object is newer than the operator's view; it changed meanwhile, or its namespace is being deleted. Usually passes |
| ` + "`gone`" + ` | the object is being deleted. Usually passes |
| ` + "`invalid`, `terminal`" + ` | the API server cannot store the object; the body cannot be applied |
| ` + "`foreign`" + ` | an object of that name has another owner |
| ` + "`altered`" + ` | stored otherwise than sent: admission changed it |
| ` + "`undone`" + ` | other clients undo the write again and again; Freehold waits before the next |
| ` + "`forbidden`, `transient`" + ` | authorization, a quota or admission refuses the write; the API server did not answer |

Freehold retries every refusal but ` + "`conflict`" + ` with back-off, after ten minutes at most, and counts each retry. The outcomes from
` + "`conflict`" + ` on exist from the start, at 0, for each writer and kind that it writes.

## Metrics of the libraries

client-go and component-base expose these, as in Kubernetes' components. The queue of MCPServers has ` + "`name=\"mcpserver\"`" + `; the lease has
the name of ` + "`--leader-elect-resource-name`" + `. The HELP texts on ` + "`/metrics`" + ` say more.
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
			text.WriteString("\n")
		}
		shared := map[string][]string{}
		for _, l := range f.Labels {
			if other := listedAt(own, f, l); other != f.Name {
				shared[other] = append(shared[other], l.Name)
			} else {
				fmt.Fprintf(&text, "- `%s` (%s)%s\n", l.Name, l.Meaning, values(l.Values))
			}
		}
		for _, other := range slices.Sorted(maps.Keys(shared)) {
			fmt.Fprintf(&text, "- %s: as for [`%s`](#%s)\n", list(shared[other]), other, other)
		}
	}
	text.WriteString(middle)
	text.WriteString("\n| Metric | Type | Labels | Means |\n|---|---|---|---|\n")
	rows := 0
	for _, f := range gathered {
		if isOwn(own, f.GetName()) || ofProcess(f.GetName()) {
			continue
		}
		stability, help, ok := strings.Cut(strings.TrimPrefix(f.GetHelp(), "["), "] ")
		if !ok || !strings.HasPrefix(f.GetHelp(), "[") {
			return "", fmt.Errorf("%s has no stability level: %q", f.GetName(), f.GetHelp())
		}
		fmt.Fprintf(&text, "| `%s` | %s, %s | %s | %s |\n",
			f.GetName(), strings.ToLower(f.GetType().String()), stability, labels(f), cell(brief(help)))
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
	const rest = "Conditions and the log name the MCPServers that others count.\n"
	if len(names) == 0 {
		return "\nNo label names an MCPServer, so the number of series does not depend on the number of MCPServers.\n" + rest
	}
	return "\nThe labels of " + strings.Join(names, " and ") + " name an MCPServer, or its StatefulSet,\n" +
		"which has the same name. The number of all other series does not depend on the number of MCPServers.\n" + rest
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
		return ""
	}
	var names []string
	for _, pair := range f.GetMetric()[0].GetLabel() {
		names = append(names, pair.GetName())
	}
	return list(names)
}

// many values of a label are listed at one metric alone.
const many = 10

// listedAt returns the name of the metric that lists the values of a label of f: the last one that has them, if they are many.
func listedAt(own []metrics.Family, f metrics.Family, of metrics.Label) string {
	if len(of.Values) < many {
		return f.Name
	}
	for _, other := range slices.Backward(own) {
		if slices.ContainsFunc(other.Labels, func(l metrics.Label) bool { return l.Name == of.Name && slices.Equal(l.Values, of.Values) }) {
			return other.Name
		}
	}
	return f.Name
}

// values lists those of a label. An open set has no list.
func values(of []string) string {
	if of == nil {
		return ""
	}
	return ": " + list(of)
}

func list(of []string) string {
	quoted := make([]string, len(of))
	for i, value := range of {
		quoted[i] = "`" + value + "`"
	}
	return strings.Join(quoted, ", ")
}

// brief returns the first sentence of a library's help, without what other columns say: the type, and the labels that the metric is
// divided by.
func brief(help string) string {
	help, _, _ = strings.Cut(strings.Join(strings.Fields(help), " "), ". ")
	help, _, _ = strings.Cut(help, ", partitioned by ")
	for _, opening := range []string{"Total number of ", "Number of ", "The count of ", "Gauge of ", "Histogram of "} {
		if rest, found := strings.CutPrefix(help, opening); found {
			help = strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return strings.TrimSuffix(help, ".") + "."
}

// cell makes a text fit into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
