// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"context"
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/tools/helm"
)

// templates are those of a chart with an MCPServer and what it refers to.
const templates = `
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPOIDCConfig
metadata:
  name: idp
spec:
  type: inline
  inline:
    issuer: {{ .Values.issuer }}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata:
  name: web
spec:
  image: example.com/mcp:{{ .Values.tag }}
  transport: streamable-http
  mcpPort: 9000
  oidcConfigRef:
    name: {{ .Values.oidcConfig }}
    audience: web
`

// values are those of the chart, with changes.
func values(changes map[string]any) map[string]any {
	all := map[string]any{"issuer": "https://idp.example.com", "tag": "a", "oidcConfig": "idp"}
	maps.Copy(all, changes)
	return all
}

// release is a release of the chart in a namespace.
type release struct {
	*harness.Namespace
	config *action.Configuration
}

const releaseName = "web"

func newRelease(t *testing.T) *release {
	t.Helper()
	ns := env.Namespace(t)
	return &release{ns, helm.Configuration(t, env.Cluster.Kubeconfig(), ns.Name)}
}

func newChart() *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: "0.1.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: []byte(templates)}},
	}
}

// install is helm install --wait.
func (r *release) install(values map[string]any) error {
	install := action.NewInstall(r.config)
	install.ReleaseName, install.Namespace = releaseName, r.Name
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, harness.Timeout
	_, err := install.Run(newChart(), values)
	return err
}

// upgrade is helm upgrade --wait.
func (r *release) upgrade(values map[string]any) error {
	upgrade := action.NewUpgrade(r.config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = r.Name, kube.StatusWatcherStrategy, harness.Timeout
	_, err := upgrade.Run(releaseName, newChart(), values)
	return err
}

// isReady fails the test unless the MCPServer is Ready with an image at this moment.
func (r *release) isReady(t *testing.T, when, image string) {
	t.Helper()
	server, err := r.Servers.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady)
	if server.Spec.Image != image || ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != server.Generation {
		t.Errorf("%s it has the image %s at generation %d, and the status %+v", when, server.Spec.Image, server.Generation, server.Status)
	}
}

// TestHelmWaitsForAnMCPServer installs, upgrades, rolls back and uninstalls a release. Helm returns from each when it is done, not before.
// An operator that starts after the objects were created is waited for as well.
func TestHelmWaitsForAnMCPServer(t *testing.T) {
	t.Parallel()
	r := newRelease(t)
	installed := make(chan error, 1)
	go func() { installed <- r.install(values(nil)) }()
	harness.Eventually(t, "the objects are created", func(ctx context.Context) error {
		_, err := r.Servers.Get(ctx, "web", metav1.GetOptions{})
		return err
	})
	select {
	case err := <-installed:
		t.Errorf("helm install has ended without an operator: %v", err)
	default:
	}
	r.Operate(t)
	if err := <-installed; err != nil {
		t.Fatal(err)
	}
	r.isReady(t, "installed", "example.com/mcp:a")

	if err := r.upgrade(values(map[string]any{"tag": "b"})); err != nil {
		t.Error(err)
	}
	r.isReady(t, "upgraded", "example.com/mcp:b")

	rollback := action.NewRollback(r.config)
	rollback.WaitStrategy, rollback.Timeout = kube.StatusWatcherStrategy, harness.Timeout
	if err := rollback.Run(releaseName); err != nil {
		t.Error(err)
	}
	r.isReady(t, "rolled back", "example.com/mcp:a")

	uninstall := action.NewUninstall(r.config)
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DeletionPropagation = kube.StatusWatcherStrategy, harness.Timeout, "background"
	if _, err := uninstall.Run(releaseName); err != nil {
		t.Error(err)
	}
	if _, err := r.Servers.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the MCPServer is there: %v", err)
	}
}

// TestHelmFailsWithFreeholdsWords installs what cannot run. Helm ends long before its time is over, and says what Freehold says. An upgrade
// that mends the MCPServer waits for it. One that mends only the configuration would not: to Helm the MCPServer, which is the same as before,
// has failed for good.
func TestHelmFailsWithFreeholdsWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values   map[string]any
		words    []string
		inServer bool
	}{
		"a missing reference":      {map[string]any{"oidcConfig": "missing"}, []string{"MCPServer", "Failed", "MCPOIDCConfig", "missing"}, true},
		"an invalid configuration": {map[string]any{"issuer": "http://idp.example.com"}, []string{"MCPOIDCConfig", "Failed", "spec.inline.issuer"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelease(t)
			r.Operate(t)
			err := r.install(values(c.values))
			if err == nil {
				t.Fatal("helm install has succeeded")
			}
			for _, word := range append(c.words, "not ready") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
			if strings.Contains(err.Error(), "deadline") {
				t.Errorf("helm install has waited until its time was over: %v", err)
			}
			if !c.inServer {
				return
			}
			if err := r.upgrade(values(nil)); err != nil {
				t.Errorf("mended: %v", err)
			}
			r.isReady(t, "mended", "example.com/mcp:a")
		})
	}
}
