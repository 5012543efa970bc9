// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// prometheusRule is as much of that kind as the manifests use.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ruleFile `json:"spec"`
}

// ruleFile is also a file of rules as Prometheus reads it.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ruleTests is a file of promtool's.
type ruleTests struct {
	Tests []struct {
		Name           string `json:"name"`
		AlertRuleTests []struct {
			Alert  string           `json:"alertname"`
			Alerts []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// ruleFiles are the manifests with alerts, by the file of testdata with their tests.
var ruleFiles = map[string]string{
	"alerts.yaml": "monitoring/rules.yaml", "ondelete.yaml": "monitoring/ondelete/rules.yaml",
}

// fileOf returns a file with one rule.
func fileOf(r rule) ruleFile {
	return ruleFile{Groups: []ruleGroup{{Name: "alone", Rules: []rule{r}}}}
}

func readRules(t *testing.T, path string) ruleFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strict[prometheusRule](t, data).Spec
}

func alerts(file ruleFile) []rule {
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// TestAlertsAreExplained shows that each alert says what it is about, and has a section in the documentation that says
// what it means, what to look at and what to do.
func TestAlertsAreExplained(t *testing.T) {
	data, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[title] = text
	}
	known := map[string]bool{}
	for _, path := range ruleFiles {
		for _, r := range alerts(readRules(t, path)) {
			known[r.Alert] = true
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: summary %q, description %q", r.Alert, r.Annotations["summary"], r.Annotations["description"])
			}
			const document = "https://github.com/freehold-dev/freehold/blob/main/docs/monitoring.md#"
			if want := document + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
			}
			section, ok := sections[r.Alert]
			if !ok {
				t.Errorf("docs/monitoring.md has no section %s", r.Alert)
				continue
			}
			for _, part := range []string{"**It means**", "**Look**", "**Do**"} {
				if !strings.Contains(section, part) {
					t.Errorf("docs/monitoring.md says no %s about %s", part, r.Alert)
				}
			}
		}
	}
	for title := range sections {
		if regexp.MustCompile(`^(Freehold|Kube)\w+$`).MatchString(title) && !known[title] {
			t.Errorf("docs/monitoring.md explains %s, which is no alert", title)
		}
	}
}

// TestAlertsAreTested shows that each alert is expected to fire by one test, and not to by another.
func TestAlertsAreTested(t *testing.T) {
	for tests, path := range ruleFiles {
		var file ruleTests
		if err := yaml.Unmarshal(readTests(t, tests), &file); err != nil {
			t.Fatal(err)
		}
		fires, silent := map[string]bool{}, map[string]bool{}
		for _, test := range file.Tests {
			never := map[string]bool{}
			for _, check := range test.AlertRuleTests {
				if _, ok := never[check.Alert]; !ok {
					never[check.Alert] = true
				}
				if len(check.Alerts) > 0 {
					fires[check.Alert], never[check.Alert] = true, false
				}
			}
			for alert, quiet := range never {
				silent[alert] = silent[alert] || quiet
			}
		}
		for _, r := range alerts(readRules(t, path)) {
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: %s is expected to fire: %t; not to fire in a test of its own: %t", tests, r.Alert, fires[r.Alert], silent[r.Alert])
			}
		}
	}
}

// promtool returns the program that tests rules. Where it is not installed the test is skipped, unless
// FREEHOLD_PROMETHEUS is "required".
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		const why = "promtool is not on PATH, so the alerts are not tried; hack/install-monitoring-packages.sh installs it"
		if os.Getenv("FREEHOLD_PROMETHEUS") == "required" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return path
}

// casesOf returns a file of tests with those of one alert alone.
func casesOf(t *testing.T, cases []byte, alert string) []byte {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal(cases, &file); err != nil {
		t.Fatal(err)
	}
	var tests []any
	for _, test := range file["tests"].([]any) {
		test := test.(map[string]any)
		checks := slices.DeleteFunc(test["alert_rule_test"].([]any), func(check any) bool { return check.(map[string]any)["alertname"] != alert })
		if len(checks) > 0 {
			test["alert_rule_test"] = checks
			tests = append(tests, test)
		}
	}
	file["tests"] = tests
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// readTests returns a file with tests of promtool's.
func readTests(t *testing.T, name string) []byte {
	t.Helper()
	cases, err := os.ReadFile(filepath.Join("monitoring", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// try has promtool run tests on rules, and returns what it says.
func try(t *testing.T, program string, cases []byte, rules ruleFile) (string, error) {
	t.Helper()
	dir := t.TempDir()
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"rules.yaml": text, "tests.yaml": cases} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			return string(output), fmt.Errorf("promtool %s: %w", strings.Join(args, " "), err)
		}
	}
	return "", nil
}

func TestAlertsPassTheirTests(t *testing.T) {
	program := promtool(t)
	for tests, path := range ruleFiles {
		if output, err := try(t, program, readTests(t, tests), readRules(t, path)); err != nil {
			t.Errorf("%s: %v\n%s", path, err, output)
		}
	}
}

// TestAlertsCannotBeBroken shows that the tests notice what may become of an alert.
func TestAlertsCannotBeBroken(t *testing.T) {
	program := promtool(t)
	exception := regexp.MustCompile(`(?s)\nunless on \(namespace, statefulset\) \(\n  freehold.*$`)
	breaks := map[string]func(*rule){
		"never fires":         func(r *rule) { r.Expr = "vector(1) < 0" },
		"always fires":        func(r *rule) { r.Expr = "vector(1)" },
		"another threshold":   func(r *rule) { r.Expr = regexp.MustCompile(`(> \d+|== 0)`).ReplaceAllString(r.Expr, "> 1e9") },
		"fires at once":       func(r *rule) { r.For = "" },
		"no exception at all": func(r *rule) { r.Expr = exception.ReplaceAllString(r.Expr, "") },
		"forgets at once":     func(r *rule) { r.Expr = strings.ReplaceAll(r.Expr, "[1d]", "[1m]") },
		"one for all leases":  func(r *rule) { r.Expr = strings.ReplaceAll(r.Expr, "(namespace, name)", "(namespace)") },
	}
	for tests, path := range ruleFiles {
		cases := readTests(t, tests)
		for _, r := range alerts(readRules(t, path)) {
			// Each is tried alone, as promtool takes its time with all.
			ofAlert := casesOf(t, cases, r.Alert)
			if output, err := try(t, program, ofAlert, fileOf(r)); err != nil {
				t.Errorf("%s fails alone: %v\n%s", r.Alert, err, output)
			}
			for what, change := range breaks {
				changed := r
				if change(&changed); changed.Expr == r.Expr && changed.For == r.For {
					continue // does not apply to this one
				}
				t.Run(r.Alert+" "+what, func(t *testing.T) {
					t.Parallel()
					output, err := try(t, program, ofAlert, fileOf(changed))
					if err == nil || !strings.Contains(output, "FAILED") {
						t.Errorf("the tests pass, or promtool does not: %v\n%s", err, output)
					}
				})
			}
		}
	}
}
