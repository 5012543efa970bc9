// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/hack/freeport"
)

// prometheus is a running one.
type prometheus struct{ address string }

// trust is whom a Prometheus takes for the operator: an authority's certificate, as a file, and the name that it must have signed.
type trust struct{ authority, name string }

// startPrometheus lets the distribution's Prometheus scrape an operator's secure metrics every second, with the rules of
// deploy/monitoring, until the test ends.
func startPrometheus(t *testing.T, target, bearer string, trusts trust) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		const why = "prometheus is not on PATH; hack/install-monitoring-packages.sh installs it"
		if os.Getenv("FREEHOLD_PROMETHEUS") == "required" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	dir := t.TempDir()
	write := func(name string, content any) string {
		text, ok := content.(string)
		if !ok {
			data, err := yaml.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var rules []string
	for name, manifest := range map[string]string{"rules": "rules.yaml", "ondelete": "ondelete/rules.yaml"} {
		data, err := os.ReadFile("../../deploy/monitoring/" + manifest)
		if err != nil {
			t.Fatal(err)
		}
		var object struct{ Spec any }
		if err := yaml.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, write(name+".yaml", object.Spec))
	}
	config := write("prometheus.yaml", map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": rules,
		"scrape_configs": []any{map[string]any{
			"job_name": "freehold-metrics", "scheme": "https", "honor_labels": true,
			"authorization": map[string]any{"credentials_file": write("token", bearer)},
			"tls_config":    map[string]any{"ca_file": trusts.authority, "server_name": trusts.name},
			"static_configs": []any{map[string]any{
				"targets": []string{target}, "labels": map[string]string{"namespace": "freehold-system", "pod": "freehold-0"},
			}},
		}},
	})

	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p := prometheus{addresses[0]}
	var log bytes.Buffer
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), //nolint:noctx // ended below
		"--web.listen-address="+p.address, "--log.level=warn")
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("Prometheus ended with %v:\n%s", err, &log)
		}
	})
	return p
}

// get asks Prometheus' API, and decodes the data of its answer.
func (p prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	target := url.URL{Scheme: "http", Host: p.address, Path: "/api/v1/" + path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// sample is one result of a query.
type sample struct {
	Metric map[string]string
	Value  [2]any // the time and, as text, the value
}

func (s sample) value() string {
	text, _ := s.Value[1].(string)
	return text
}

// query returns what a query finds now.
func (p prometheus) query(ctx context.Context, expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := p.get(ctx, "query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// one fails unless a query finds one sample of that value.
func (p prometheus) one(ctx context.Context, expr, value string) error {
	found, err := p.query(ctx, expr)
	if err == nil && (len(found) != 1 || found[0].value() != value) {
		err = fmt.Errorf("%s is %v, want %s", expr, found, value)
	}
	return err
}

// panel of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

// panels returns those of the dashboard, with their variables filled in.
func panels(t *testing.T) []panel {
	t.Helper()
	data, err := os.ReadFile("../../deploy/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("$job", "freehold-metrics", "$__rate_interval", "1m").Replace(string(data))
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}
