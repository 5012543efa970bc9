// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promql checks the queries of deploy/monitoring, those of the alerts and of the dashboard, against the metrics
// that docs/metrics.md lists. It is a module of its own, so that Prometheus' parser is no dependency of anything else.
package promql

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Metric describes a metric.
type Metric struct {
	// Type is counter, gauge or histogram.
	Type string
	// Labels has the values of each label, nil where they are open.
	Labels map[string][]string
}

var (
	ownHeading = regexp.MustCompile(`(?m)^### (\w+)\n\n(\w+), `)
	ownLabel   = regexp.MustCompile("(?m)^- `(\\w+)` \\([^)]*\\)(.*)$")
	sameLabels = regexp.MustCompile("(?m)^- (.*): as for \\[`(\\w+)`\\]")
	libraryRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+), \\w+ \\| ([^|]*) \\|")
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// Metrics reads the metrics that docs/metrics.md lists.
func Metrics(document string) map[string]Metric {
	metrics := map[string]Metric{}
	type reference struct {
		of     Metric
		labels []string
		metric string
	}
	var references []reference
	for _, section := range strings.Split(document, "\n### ")[1:] {
		heading := ownHeading.FindStringSubmatch("### " + section)
		if heading == nil {
			continue // not about one metric
		}
		m := Metric{Type: heading[2], Labels: map[string][]string{}}
		for _, row := range ownLabel.FindAllStringSubmatch(section, -1) {
			m.Labels[row[1]] = unquote(row[2])
		}
		for _, row := range sameLabels.FindAllStringSubmatch(section, -1) {
			references = append(references, reference{of: m, labels: unquote(row[1]), metric: row[2]})
		}
		metrics[heading[1]] = m
	}
	for _, r := range references {
		for _, label := range r.labels {
			r.of.Labels[label] = metrics[r.metric].Labels[label]
		}
	}
	for _, row := range libraryRow.FindAllStringSubmatch(document, -1) {
		m := Metric{Type: row[2], Labels: map[string][]string{}}
		for _, label := range unquote(row[3]) {
			m.Labels[label] = nil
		}
		metrics[row[1]] = m
	}
	return metrics
}

func unquote(text string) []string {
	var values []string
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		values = append(values, match[1])
	}
	return values
}

// Query is an expression and where it stands.
type Query struct {
	Where, Expr string
	// Legend of a graph; empty for an alert.
	Legend string
}

// Queries returns all queries of the rules and the dashboard in a directory. Variables of the dashboard are replaced.
func Queries(dir string) ([]Query, error) {
	var queries []Query
	for _, file := range []string{"rules.yaml", "ondelete/rules.yaml"} {
		found, err := rules(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		queries = append(queries, found...)
	}
	found, err := dashboard(filepath.Join(dir, "dashboard.json"))
	return append(queries, found...), err
}

func rules(path string) ([]Query, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var queries []Query
	for _, group := range file.Spec.Groups {
		for _, r := range group.Rules {
			queries = append(queries, Query{Where: r.Alert, Expr: r.Expr})
		}
	}
	return queries, nil
}

// variables of the dashboard, with values that Grafana may put in their place.
var variables = strings.NewReplacer("$job", "freehold-metrics", "$__rate_interval", "5m")

func dashboard(path string) ([]Query, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var queries []Query
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, Query{Where: panel.Title, Expr: variables.Replace(target.Expr), Legend: target.LegendFormat})
		}
	}
	return queries, nil
}
