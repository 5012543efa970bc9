// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// serviceMonitor is as much of that kind as the manifests use.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []monitoredEndpoint  `json:"endpoints"`
	} `json:"spec"`
}

type monitoredEndpoint struct {
	Port        string        `json:"port"`
	HonorLabels bool          `json:"honorLabels"`
	Scheme      string        `json:"scheme"`
	TokenFile   string        `json:"bearerTokenFile"`
	TLS         *monitoredTLS `json:"tlsConfig"`
}

// monitoredTLS is how an endpoint is verified.
type monitoredTLS struct {
	ServerName string `json:"serverName"`
	CA         struct {
		Secret corev1.SecretKeySelector `json:"secret"`
	} `json:"ca"`
}

// monitoring are the objects of an overlay for Prometheus and Grafana.
type monitoring struct {
	monitors   []serviceMonitor
	rules      []prometheusRule
	dashboards []corev1.ConfigMap
}

func renderedMonitoring(t *testing.T, overlay string) monitoring {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", overlay, "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all monitoring
	for _, document := range documents(t, string(data)) {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		switch meta.Kind {
		case "ServiceMonitor":
			all.monitors = append(all.monitors, strict[serviceMonitor](t, document))
		case "PrometheusRule":
			all.rules = append(all.rules, strict[prometheusRule](t, document))
		case "ConfigMap":
			all.dashboards = append(all.dashboards, strict[corev1.ConfigMap](t, document))
		default:
			t.Fatalf("%s %s does not belong to monitoring", meta.Kind, meta.Name)
		}
		if want := installed(t).deployments[0].Namespace; meta.Namespace != want {
			t.Errorf("%s %s is in %q, want %q", meta.Kind, meta.Name, meta.Namespace, want)
		}
	}
	return all
}

// TestMonitorFindsTheMetrics shows that the ServiceMonitor selects the Service of install.yaml and a port that it has,
// and that the series bear the job that the rules go by.
func TestMonitorFindsTheMetrics(t *testing.T) {
	all := renderedMonitoring(t, "monitoring")
	monitor, service := one(t, all.monitors), one(t, installed(t).services)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if selector.Empty() || !selector.Matches(labels.Set(service.Labels)) {
		t.Errorf("the monitor selects %s, the Service has %v", selector, service.Labels)
	}
	endpoint := one(t, monitor.Spec.Endpoints)
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port }) {
		t.Errorf("the monitor scrapes port %q, the Service has %v", endpoint.Port, service.Spec.Ports)
	}
	if !endpoint.HonorLabels {
		t.Error("the namespace of a StatefulSet would be overwritten by that of the operator")
	}
	// The Prometheus operator names the job after the Service.
	rules := alerts(one(t, all.rules).Spec)
	rules = append(rules, alerts(one(t, renderedMonitoring(t, "monitoring-ondelete").rules).Spec)...)
	for _, r := range rules {
		if !strings.Contains(r.Expr, `{job="`+service.Name+`"`) {
			t.Errorf("%s does not go by the job %s", r.Alert, service.Name)
		}
	}
}

// TestDashboardIsWhole shows that Grafana finds the dashboard in the ConfigMap, and that no panel lies on another.
func TestDashboardIsWhole(t *testing.T) {
	configMap := one(t, renderedMonitoring(t, "monitoring").dashboards)
	if configMap.Labels["grafana_dashboard"] == "" {
		t.Errorf("labels %v lack what a sidecar of Grafana looks for", configMap.Labels)
	}
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(configMap.Data["freehold.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("not a dashboard: %+v", dashboard)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q or outside at %d, %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("%s: description %q, %d queries", p.Title, p.Description, len(p.Targets))
		}
	}
}
