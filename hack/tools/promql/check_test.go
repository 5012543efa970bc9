// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository is the root of the project.
const repository = "../../.."

func known(t *testing.T) map[string]Metric {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	return Metrics(string(data))
}

// The list is read whole: metrics of every type, with closed sets and open ones.
func TestMetrics(t *testing.T) {
	metrics := known(t)
	for name, want := range map[string]struct{ typ, label, value string }{
		"freehold_writes_total":                {"counter", "outcome", "forbidden"},
		"freehold_field_conflicts":             {"gauge", "manager_class", "scaler"},
		"freehold_claim_changes_total":         {"counter", "writer", "freehold-proxy"},
		"freehold_takeovers":                   {"gauge", "state", "waiting"},
		"freehold_ondelete_backends":           {"gauge", "statefulset", ""},
		"workqueue_depth":                      {"gauge", "name", ""},
		"rest_client_request_duration_seconds": {"histogram", "verb", ""},
		"leader_election_master_status":        {"gauge", "name", ""},
	} {
		m, ok := metrics[name]
		values, labelled := m.Labels[want.label]
		if !ok || m.Type != want.typ || !labelled {
			t.Errorf("%s is %+v, want a %s with the label %s", name, m, want.typ, want.label)
		}
		if got := strings.Contains(strings.Join(values, " ")+" ", want.value+" ") && values != nil; got != (want.value != "") {
			t.Errorf("%s: values of %s are %q, want %q among them, or none", name, want.label, values, want.value)
		}
	}
	for name := range metrics {
		if !strings.Contains(name, "_") {
			t.Errorf("%q was taken for a metric", name)
		}
	}
}

func TestQueries(t *testing.T) {
	queries, err := Queries(filepath.Join(repository, "deploy", "monitoring"))
	if err != nil {
		t.Fatal(err)
	}
	legends := 0
	for _, query := range queries {
		if err := Check(query, known(t)); err != nil {
			t.Errorf("%s: %s\n%v", query.Where, query.Expr, err)
		}
		if query.Legend != "" {
			legends++
		}
	}
	if alerts := len(queries) - legends; alerts < 8 || legends < 20 {
		t.Errorf("%d queries of alerts and %d of graphs were found", alerts, legends)
	}
}

// What is wrong is found.
func TestCheckFinds(t *testing.T) {
	const job = `job="freehold-metrics"`
	for name, test := range map[string]struct{ expr, legend, want string }{
		"no query":              {"sum(", "", "parse error"},
		"an unknown metric":     {`freehold_write_total{` + job + `}`, "", `no series "freehold_write_total"`},
		"an unknown label":      {`freehold_takeovers{` + job + `, writer="x"}`, "", "no label writer"},
		"an unknown value":      {`rate(freehold_writes_total{` + job + `, outcome=~"forbidden|refused"}[5m])`, "", `never "refused"`},
		"an unknown group":      {`sum by (kind) (freehold_takeovers{` + job + `})`, "", "by (kind)"},
		"an unknown match":      {`freehold_takeovers{` + job + `} and on (kind) workqueue_depth{` + job + `}`, "", "on (kind)"},
		"another job":           {`freehold_takeovers{job="freehold"}`, "", `the job "freehold"`},
		"no job":                {`freehold_takeovers`, "", `the job ""`},
		"a counter":             {`sum(freehold_writes_total{` + job + `})`, "", "needs a rate"},
		"a histogram":           {`rate(workqueue_work_duration_seconds{` + job + `}[5m])`, "", "no series"},
		"a bucket of no bucket": {`rate(workqueue_depth_bucket{` + job + `}[5m])`, "", "no series"},
		"le of a count":         {`sum by (le) (rate(workqueue_work_duration_seconds_count{` + job + `}[5m]))`, "", "by (le)"},
		"an unknown legend":     {`freehold_takeovers{` + job + `}`, "{{writer}}", "the legend names writer"},
		"no metric":             {`vector(1)`, "", "reads no metric"},
	} {
		err := Check(Query{Expr: test.expr, Legend: test.legend}, known(t))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	right := Query{
		Expr:   `histogram_quantile(0.9, sum by (le, pod) (rate(workqueue_work_duration_seconds_bucket{` + job + `}[5m])))`,
		Legend: "{{ pod }}",
	}
	if err := Check(right, known(t)); err != nil {
		t.Errorf("a query that is right: %v", err)
	}
}
