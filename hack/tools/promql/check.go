// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are those that Prometheus and its operator give every series of the operator's.
var targetLabels = []string{"job", "instance", "namespace", "pod", "service", "endpoint", "container"}

// foreign are metrics that other programs expose and that the queries use, with their labels: those of kube-state-metrics.
var foreign = map[string]Metric{
	"kube_statefulset_replicas":                stateMetric(),
	"kube_statefulset_status_replicas":         stateMetric(),
	"kube_statefulset_status_replicas_updated": stateMetric(),
	"kube_statefulset_status_current_revision": stateMetric("revision"),
	"kube_statefulset_status_update_revision":  stateMetric("revision"),
}

func stateMetric(more ...string) Metric {
	m := Metric{Type: "gauge", Labels: map[string][]string{"namespace": nil, "statefulset": nil}}
	for _, label := range more {
		m.Labels[label] = nil
	}
	return m
}

// process are metrics of every Go program that the queries use.
var process = map[string]Metric{
	"process_resident_memory_bytes": {Type: "gauge"}, "process_start_time_seconds": {Type: "gauge"}, "process_cpu_seconds_total": {Type: "counter"}, "go_goroutines": {Type: "gauge"},
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// Check returns the problems of a query: names, labels and values that no metric has, a counter that is read without a
// rate, a series of another job.
func Check(query Query, known map[string]Metric) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query.Expr)
	if err != nil {
		return err
	}
	var errs []error
	have := map[string]bool{}
	selectors := 0
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			selectors++
			metric, err := lookup(n.Name, known)
			if err != nil {
				errs = append(errs, err)
				return nil
			}
			for name := range metric.Labels {
				have[name] = true
			}
			errs = append(errs, checkMatchers(n, metric), checkCounter(n, metric, path))
		case *parser.AggregateExpr:
			errs = append(errs, checkGrouping("by", n.Grouping, n.Expr, known))
		case *parser.BinaryExpr:
			if n.VectorMatching != nil && n.VectorMatching.On {
				errs = append(errs, checkGrouping("on", n.VectorMatching.MatchingLabels, n, known))
			}
		}
		return nil
	})
	if selectors == 0 {
		errs = append(errs, errors.New("it reads no metric"))
	}
	for _, match := range legendLabel.FindAllStringSubmatch(query.Legend, -1) {
		if !have[match[1]] && !slices.Contains(targetLabels, match[1]) {
			errs = append(errs, fmt.Errorf("the legend names %s, which no metric of it has", match[1]))
		}
	}
	return errors.Join(errs...)
}

// lookup finds the metric of a series. The series of a histogram have names and labels of their own.
func lookup(series string, known map[string]Metric) (Metric, error) {
	for _, metrics := range []map[string]Metric{known, foreign, process} {
		if m, ok := metrics[series]; ok && m.Type != "histogram" {
			return m, nil
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if m, ok := metrics[strings.TrimSuffix(series, suffix)]; ok && m.Type == "histogram" && strings.HasSuffix(series, suffix) {
				of := Metric{Type: "counter", Labels: map[string][]string{}}
				maps.Copy(of.Labels, m.Labels)
				if suffix == "_bucket" {
					of.Labels["le"] = nil
				}
				return of, nil
			}
		}
	}
	return Metric{}, fmt.Errorf("there is no series %q", series)
}

func checkMatchers(selector *parser.VectorSelector, metric Metric) error {
	var errs []error
	job := ""
	for _, m := range selector.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if m.Name == "job" {
			job = m.Value
		}
		values, own := metric.Labels[m.Name]
		if !own && !slices.Contains(targetLabels, m.Name) {
			errs = append(errs, fmt.Errorf("%s has no label %s", selector.Name, m.Name))
		}
		if values == nil {
			continue
		}
		for value := range strings.SplitSeq(m.Value, "|") {
			if !slices.Contains(values, value) {
				errs = append(errs, fmt.Errorf("%s: %s is never %q, but one of %v", selector.Name, m.Name, value, values))
			}
		}
	}
	want := "freehold-metrics"
	if _, ok := foreign[selector.Name]; ok {
		want = "kube-state-metrics"
	}
	if job != want {
		errs = append(errs, fmt.Errorf("%s is taken from the job %q, want %q", selector.Name, job, want))
	}
	return errors.Join(errs...)
}

// checkCounter finds a counter that is used as if its value alone meant something.
func checkCounter(selector *parser.VectorSelector, metric Metric, path []parser.Node) error {
	if metric.Type != "counter" {
		return nil
	}
	for _, node := range path {
		if call, ok := node.(*parser.Call); ok && slices.Contains([]string{"rate", "irate", "increase", "resets"}, call.Func.Name) {
			return nil
		}
	}
	return fmt.Errorf("%s is a counter and needs a rate", selector.Name)
}

// checkGrouping finds labels that nothing below has.
func checkGrouping(word string, grouping []string, below parser.Expr, known map[string]Metric) error {
	var errs []error
	for _, label := range grouping {
		found := slices.Contains(targetLabels, label)
		parser.Inspect(below, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				if metric, err := lookup(selector.Name, known); err == nil {
					_, has := metric.Labels[label]
					found = found || has
				}
			}
			return nil
		})
		if !found {
			errs = append(errs, fmt.Errorf("%s (%s): nothing there has that label", word, label))
		}
	}
	return errors.Join(errs...)
}
