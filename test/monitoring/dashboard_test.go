// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// quiet are panels that have nothing to show while all is well.
var quiet = map[string]bool{"Failing writes, by writer": true, "Fields that change hands": true}

// A real Prometheus reads the metrics of an operator that leads, in a namespace where a scaler disputes a number of
// replicas, somebody has set OnDelete, and a pod does not fit on any node: every query of the dashboard has data, and every alert can be evaluated.
func TestPrometheus(t *testing.T) {
	allowReviews(t)
	ns := env.Namespace(t)
	bearer := token(t, ns.Name, "prometheus")
	allowReading(t, ns.Name, "prometheus")
	signs, certificates := newAuthority(t), t.TempDir()
	signs.issue(t, certificates, serverName(t))
	process := ns.Operate(t, "--metrics-secure", "--metrics-certificate-directory="+certificates,
		"--leader-elect=true", "--leader-elect-resource-namespace="+operator.Namespace)
	p := startPrometheus(t, process.MetricsAddress(), bearer, trust{signs.file, serverName(t)})
	harness.Eventually(t, "Prometheus scrapes the operator", func(ctx context.Context) error {
		return p.one(ctx, `up{job="freehold-metrics"}`, "1")
	})

	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1)))
	ns.AwaitSettled(t, "web")
	scale, err := env.Core.AppsV1().Deployments(ns.Name).GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 2
	if _, err := env.Core.AppsV1().Deployments(ns.Name).UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{FieldManager: "keda"}); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Core.AppsV1().StatefulSets(ns.Name).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`), metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}

	ns.Create(t, harness.Server("homeless", v1beta1.TransportStreamableHTTP,
		harness.PodTemplate(`{"spec": {"nodeSelector": {"example.com/there": "never"}, "containers": [{"name": "mcp"}]}}`)))

	for expr, want := range map[string]string{
		fmt.Sprintf(`freehold_stuck_rollouts{namespace=%q, mcpserver="homeless", tier="backend", reason="Unschedulable"}`, ns.Name):          "1",
		`leader_election_master_status{job="freehold-metrics", name="freehold"}`:                                                             "1",
		`freehold_field_conflicts{writer="freehold-proxy-replicas", kind="Deployment", manager_class="scaler", namespace="freehold-system"}`: "1",
		fmt.Sprintf(`freehold_ondelete_backends{namespace=%q, statefulset="web"}`, ns.Name):                                                  "1",
		`freehold_takeovers{state="active"}`: "0",
	} {
		harness.Eventually(t, expr, func(ctx context.Context) error { return p.one(ctx, expr, want) })
	}

	queries := 0
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			queries++
			harness.Eventually(t, panel.Title, func(ctx context.Context) error {
				found, err := p.query(ctx, target.Expr)
				if err != nil || quiet[panel.Title] {
					return err
				}
				for _, sample := range found {
					if sample.value() != "NaN" {
						return nil
					}
				}
				return fmt.Errorf("%s finds %v", target.Expr, found)
			})
		}
	}
	if queries < 20 {
		t.Errorf("%d queries were tried", queries)
	}
	checkRules(t, p)

	// The strategy is told as long as it is so.
	if _, err := env.Core.AppsV1().StatefulSets(ns.Name).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`), metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "OnDelete is told no more", func(ctx context.Context) error {
		found, err := p.query(ctx, `freehold_ondelete_backends`)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("it is %v", found)
		}
		return err
	})
}

// checkRules shows that Prometheus can evaluate every alert, that those of the conflict and of the pod are on their way, and
// that no others are.
func checkRules(t *testing.T, p prometheus) {
	t.Helper()
	harness.Eventually(t, "the alerts are evaluated", func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
		if err := p.get(ctx, "rules", nil, &data); err != nil {
			return err
		}
		var errs []error
		count := 0
		for _, group := range data.Groups {
			for _, r := range group.Rules {
				count++
				want := "inactive"
				if r.Name == "FreeholdFieldConflict" || r.Name == "FreeholdRolloutStuck" {
					want = "pending"
				}
				if r.Health != "ok" || r.State != want {
					errs = append(errs, fmt.Errorf("%s is %s, %s %s; want it to be %s", r.Name, r.State, r.Health, r.LastError, want))
				}
			}
		}
		if count < 9 {
			errs = append(errs, fmt.Errorf("there are %d alerts", count))
		}
		return errors.Join(errs...)
	})
}
