// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// Field managers of those who are neither ToolHive nor Freehold.
const (
	// loadBalancer writes annotations of Services, as GKE's NEG controller does.
	loadBalancer = "glbc"
	// mesh injects a sidecar by server-side apply.
	mesh = "mesh-injector"
)

// negStatus is the annotation of loadBalancer.
const negStatus = "cloud.google.com/neg-status"

// edit changes the MCPServer's spec as its author.
func edit(change harness.Change) deed {
	return deed{edited, func(t *testing.T, w *world, server string) {
		t.Helper()
		w.Edit(t, server, change)
	}}
}

// by is something done with kubectl.
func by(what string, args func(server string) []string) deed {
	return deed{what, func(t *testing.T, w *world, server string) {
		t.Helper()
		w.kubectl.Run(t, args(server)...)
	}}
}

var (
	scaledBackend = by("its backend is scaled", func(server string) []string {
		return []string{"scale", "statefulset/" + server, "--replicas=2"}
	})
	restartedByHand = by("its workloads are restarted", func(server string) []string {
		return []string{"rollout", "restart", "deployment/" + server, "statefulset/" + server}
	})
	labelledByHand = by("its objects are labelled", func(server string) []string {
		return []string{
			"label", "deployment/" + server, "statefulset/" + server, "service/mcp-" + server, "configmap/" + server + "-runconfig",
			"serviceaccount/" + server + "-proxy-runner", "mcpserver/" + server, "example.com/looked-at=yes",
		}
	})
	annotatedByHand = by("its objects are annotated", func(server string) []string {
		return []string{
			"annotate", "deployment/" + server, "statefulset/" + server, "service/mcp-" + server + "-proxy",
			"role/" + server + "-proxy-runner", "mcpserver/" + server, "example.com/note=do not touch",
		}
	})
	imageByHand = by("its backend gets another image", func(server string) []string {
		return []string{"set", "image", "statefulset/" + server, "mcp=" + images.NextServer}
	})
	editedByHand = deed{"its Deployment is edited", func(t *testing.T, w *world, server string) {
		t.Helper()
		w.kubectl.Do(t, harness.Call{
			Args:   []string{"edit", "deployment/" + server},
			Editor: "sed -i s/terminationGracePeriodSeconds:.*/terminationGracePeriodSeconds:\\ 20/",
		})
	}}
)

// autoscaled waits for what the autoscaler does, see autoscalerYAML.
var autoscaled = deed{"its proxy is scaled by an autoscaler", func(t *testing.T, w *world, server string) {
	t.Helper()
	harness.Eventually(t, "the autoscaler has scaled "+server, func(ctx context.Context) error {
		scale, err := w.Core.AppsV1().Deployments(w.Name).GetScale(ctx, server, metav1.GetOptions{})
		if err == nil && scale.Spec.Replicas != 2 {
			err = fmt.Errorf("there are %d replicas", scale.Spec.Replicas)
		}
		return err
	})
}}

var (
	negAnnotated = deed{"its Services are annotated by a load balancer", func(t *testing.T, w *world, server string) {
		t.Helper()
		for _, component := range []harness.Component{harness.ProxyService, harness.BackendService, harness.HeadlessService} {
			annotations := w.MustObject(t, component, server).GetAnnotations()
			operation := harness.Add("/metadata/annotations", map[string]string{negStatus: "{}"})
			if len(annotations) > 0 {
				operation = harness.Add("/metadata/annotations/cloud.google.com~1neg-status", "{}")
			}
			w.MustPatch(t, loadBalancer, component, server, operation)
		}
	}}
	sidecarInjected = deed{"a sidecar is injected", func(t *testing.T, w *world, server string) {
		t.Helper()
		sidecar := map[string]any{
			"name": "mesh", "image": images.NextServer, "env": []any{
				map[string]any{"name": "MCP_TRANSPORT", "value": "streamable-http"},
				map[string]any{"name": "MCP_PORT", "value": "9902"},
			},
		}
		template := map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"example.com/mesh": "injected"}},
			"spec":     map[string]any{"containers": []any{sidecar}},
		}
		for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
			w.MustApply(t, mesh, component, server, false, map[string]any{"spec": map[string]any{"template": template}})
		}
	}}
)
