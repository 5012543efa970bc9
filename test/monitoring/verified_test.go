// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/test/harness"
)

// serverName is that by which the ServiceMonitor of deploy/monitoring/secure asks every operator.
func serverName(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/testdata/monitoring-secure/rendered.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var monitor struct {
			Kind string
			Spec struct {
				Endpoints []struct{ TLSConfig struct{ ServerName string } }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &monitor); err == nil && monitor.Kind == "ServiceMonitor" {
			return monitor.Spec.Endpoints[0].TLSConfig.ServerName
		}
	}
	t.Fatal("there is no ServiceMonitor")
	return ""
}

// lastError is why the last scrape failed; empty where it did not.
func (p prometheus) lastError(ctx context.Context) (string, error) {
	var data struct {
		ActiveTargets []struct{ Health, LastError string }
	}
	if err := p.get(ctx, "targets", nil, &data); err != nil {
		return "", err
	}
	if len(data.ActiveTargets) != 1 || data.ActiveTargets[0].Health == "unknown" {
		return "", fmt.Errorf("the targets are %v", data.ActiveTargets)
	}
	return data.ActiveTargets[0].LastError, nil
}

// A real Prometheus with the settings of deploy/monitoring/secure reads from an operator whose certificate its authority has signed for
// the right name, and from no other: neither where another authority signed one for that name, nor where its own did for another name.
func TestPrometheusVerifiesTheOperator(t *testing.T) {
	allowReviews(t)
	name, trusted := serverName(t), newAuthority(t)
	for why, test := range map[string]struct {
		by            *authority
		name, refusal string
	}{
		"it verifies":       {by: trusted, name: name},
		"another authority": {newAuthority(t), name, "x509: certificate signed by unknown authority"},
		"another name":      {trusted, "operator.example.com", "x509: certificate is valid for operator.example.com, not " + name},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			ns, certificates := env.Namespace(t), t.TempDir()
			bearer := token(t, ns.Name, "prometheus")
			allowReading(t, ns.Name, "prometheus")
			test.by.issue(t, certificates, test.name)
			process := ns.Operate(t, "--metrics-secure", "--metrics-certificate-directory="+certificates)
			p := startPrometheus(t, process.MetricsAddress(), bearer, trust{trusted.file, name})
			harness.Eventually(t, "the scrape ends as it should", func(ctx context.Context) error {
				refusal, err := p.lastError(ctx)
				if err == nil && ((refusal == "") != (test.refusal == "") || !strings.Contains(refusal, test.refusal)) {
					err = fmt.Errorf("it ended with %q, want %q", refusal, test.refusal)
				}
				return err
			})
			up, series := "1", 1
			if test.refusal != "" {
				up, series = "0", 0
			}
			harness.Eventually(t, "what it has read", func(ctx context.Context) error {
				found, err := p.query(ctx, "freehold_build_info")
				if err == nil && len(found) != series {
					err = fmt.Errorf("there are %v", found)
				}
				return errors.Join(err, p.one(ctx, `up{job="freehold-metrics"}`, up))
			})
		})
	}
}
