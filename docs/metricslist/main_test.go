// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"k8s.io/component-base/metrics"

	ours "github.com/freehold-dev/freehold/pkg/metrics"
)

func TestRunWritesEveryMetric(t *testing.T) {
	var last string
	for range 2 { // what has been counted already changes nothing
		file := filepath.Join(t.TempDir(), "metrics.md")
		if err := run(t.Context(), []string{file}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" && last != string(text) {
			t.Errorf("the second run differs:\n%s", cmp.Diff(last, string(text)))
		}
		last = string(text)
	}
	for _, f := range ours.Families() {
		if !strings.Contains(last, "\n### "+f.Name+"\n") {
			t.Errorf("%s is not described", f.Name)
		}
	}
	// One of each library, that the alerts and the dashboard count on.
	for _, name := range []string{"rest_client_requests_total", "workqueue_depth", "leader_election_master_status"} {
		if !strings.Contains(last, "| `"+name+"` |") {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", "kubernetes_build_info"} {
		if strings.Contains(last, name) {
			t.Errorf("%s is listed", name)
		}
	}
	if err := run(t.Context(), nil); err == nil {
		t.Error("no argument: want an error")
	}
}

func TestCardinalityNamesTheLabelsOfAnMCPServer(t *testing.T) {
	own := []ours.Family{
		{Name: "a", Labels: []ours.Label{{Name: "namespace"}, {Name: "mcpserver"}}},
		{Name: "b", Labels: []ours.Label{{Name: "writer"}}},
		{Name: "c", Labels: []ours.Label{{Name: "namespace"}, {Name: "statefulset"}}},
	}
	if got, want := cardinality(own), "\nThe labels of `a` and `c` name an MCPServer"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := cardinality(own[1:2]), "\nNo label names an MCPServer"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A label whose values are names of objects comes with their namespace, by which they are found.
	page := cardinality(ours.Families())
	for _, family := range ours.Families() {
		for _, label := range family.Labels {
			if (label.Name == "mcpserver" || label.Name == "statefulset") && !strings.Contains(page, "`"+family.Name+"`") {
				t.Errorf("%s has the label %s, and the page does not say so", family.Name, label.Name)
			}
		}
	}
}

func TestOutcomesAreExplained(t *testing.T) {
	for _, f := range ours.Families() {
		for _, l := range f.Labels {
			if l.Name != "outcome" {
				continue
			}
			for _, value := range l.Values {
				if !strings.Contains(middle, "`"+value+"`") {
					t.Errorf("the outcome %s is not explained", value)
				}
			}
		}
	}
}

func TestDocumentDescribesEachMetric(t *testing.T) {
	own := []ours.Family{{
		Name: "a_total", Type: ours.Counter, Stability: metrics.ALPHA, Help: "Counts.",
		Labels: []ours.Label{{Name: "x", Meaning: "an x", Values: []string{"1", "2"}}, {Name: "y", Meaning: "a y"}},
	}}
	of := func(name, help string, typ dto.MetricType, labels ...string) *dto.MetricFamily {
		m := &dto.Metric{}
		for _, label := range labels {
			m.Label = append(m.Label, &dto.LabelPair{Name: &label})
		}
		return &dto.MetricFamily{Name: &name, Help: &help, Type: &typ, Metric: []*dto.Metric{m}}
	}
	got, err := document(own, []*dto.MetricFamily{
		of("a_total", "[ALPHA] Counts.", dto.MetricType_COUNTER, "x", "y"),
		of("go_threads", "Threads.", dto.MetricType_GAUGE),
		of("b_seconds", "[BETA] This | that,\nor both. In seconds.", dto.MetricType_HISTOGRAM, "z"),
		of("c", "[STABLE] Number of lines, partitioned by\nlength", dto.MetricType_GAUGE),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"\n### a_total\n\ncounter, ALPHA. Counts.\n", "- `x` (an x): `1`, `2`\n- `y` (a y)\n",
		"| `b_seconds` | histogram, BETA | `z` | This \\| that, or both. |\n| `c` | gauge, STABLE |  | Lines. |\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	for _, part := range []string{"| `a_total`", "go_threads", "In seconds"} {
		if strings.Contains(got, part) {
			t.Errorf("%q is in\n%s", part, got)
		}
	}
	if _, err := document(own, []*dto.MetricFamily{of("d", "no stability", dto.MetricType_GAUGE)}); err == nil {
		t.Error("a metric that does not say how stable it is: want an error")
	}
	if _, err := document(own, nil); err == nil {
		t.Error("no library: want an error")
	}
}

// A long list of values is there once, and the other metrics with these values refer to it.
func TestDocumentListsManyValuesOnce(t *testing.T) {
	var all []string
	for i := range many {
		all = append(all, fmt.Sprint("value", i))
	}
	shared, few := ours.Label{Name: "x", Meaning: "an x", Values: all}, ours.Label{Name: "y", Meaning: "a y", Values: all[:1]}
	own := []ours.Family{
		{Name: "a_total", Type: ours.Counter, Stability: metrics.ALPHA, Help: "Counts.", Labels: []ours.Label{shared, few}},
		{Name: "b_total", Type: ours.Counter, Stability: metrics.ALPHA, Help: "Counts.", Labels: []ours.Label{shared, few}},
	}
	name, help, typ := "c", "[ALPHA] C.", dto.MetricType_GAUGE
	got, err := document(own, []*dto.MetricFamily{{Name: &name, Help: &help, Type: &typ}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"a_total\n\ncounter, ALPHA. Counts.\n\n- `y` (a y): `value0`\n- `x`: as for [`b_total`](#b_total)\n",
		"b_total\n\ncounter, ALPHA. Counts.\n\n- `x` (an x): `value0`, `value1`",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

// All that is told, by the libraries too, follows Prometheus' conventions, in so far as promlint knows them.
func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	families, err := gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := promlint.New(&text).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	// It finds what is wrong, or the above says nothing.
	problems, err = promlint.New(strings.NewReader("# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n")).Lint()
	if err != nil || len(problems) == 0 {
		t.Errorf("a gauge called a_total passes: %v, %v", problems, err)
	}
}
