// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"encoding/json"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// serverSpec is a spec of an MCPServer. Its pods are Ready as soon as they run.
const serverSpec = `{"image": "example.com/mcp:1", "transport": "streamable-http", "mcpPort": 9000}`

func newServers(t *testing.T) *scene {
	t.Helper()
	return newScene(t, v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind), "mcpservers")
}

// believeServers fails the test for each version of an MCPServer that kstatus took for done without being Ready or Stopped, or for failed
// without being Stalled.
func (s *scene) believeServers(t *testing.T) {
	t.Helper()
	s.believe(t, func(live *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return conditionIs(live, v1beta1.ConditionReady, metav1.ConditionTrue) || phase == string(v1beta1.PhaseStopped)
	}, func(live *unstructured.Unstructured) bool {
		return conditionIs(live, v1beta1.ConditionStalled, metav1.ConditionTrue)
	})
}

// TestVerdictOnAnMCPServer follows an MCPServer through its life. It is done when it is Ready, and never before.
func TestVerdictOnAnMCPServer(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	must(t, "created while no operator runs", s.create(t, "web", serverSpec), status.InProgressStatus)
	s.Operate(t)
	s.await(t, "created", "web", status.CurrentStatus)
	must(t, "edited", s.patch(t, "web", `{"spec": {"image": "example.com/mcp:2"}}`), status.InProgressStatus)
	s.await(t, "edited", "web", status.CurrentStatus)
	s.end(t, "web")
	s.believeServers(t)
}

// TestVerdictOnAnMCPServerWithoutPods scales an MCPServer to zero, and creates one so. An intended zero is done.
func TestVerdictOnAnMCPServerWithoutPods(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.Operate(t)
	s.create(t, "web", serverSpec)
	s.await(t, "created", "web", status.CurrentStatus)
	must(t, "scaled to zero", s.patch(t, "web", `{"spec": {"replicas": 0, "backendReplicas": 0}}`), status.InProgressStatus)
	s.await(t, "scaled to zero", "web", status.CurrentStatus)
	must(t, "scaled to one", s.patch(t, "web", `{"spec": {"replicas": 1, "backendReplicas": 1}}`), status.InProgressStatus)
	s.await(t, "scaled to one", "web", status.CurrentStatus)

	must(t, "created with zero", s.create(t, "none", `{"image": "example.com/mcp:1", "transport": "streamable-http", "replicas": 0, "backendReplicas": 0}`), status.InProgressStatus)
	s.await(t, "created with zero", "none", status.CurrentStatus)
	s.believeServers(t)
}

// TestVerdictOnAnMCPServerThatCannotRun has an MCPServer whose spec is invalid, and one that refers to what does not exist. The verdict has
// Freehold's words, and ends with the cause.
func TestVerdictOnAnMCPServerThatCannotRun(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.Operate(t)
	s.create(t, "invalid", `{"image": "example.com/mcp:1", "transport": "streamable-http", "podTemplateSpec": {"spec": {"containers": [{"name": "mcp", "command": "sh"}]}}}`)
	s.await(t, "created with an invalid spec", "invalid", status.FailedStatus, "spec.podTemplateSpec", "command")
	must(t, "mended", s.replace(t, "invalid", serverSpec), status.InProgressStatus)
	s.await(t, "mended", "invalid", status.CurrentStatus)
	must(t, "made invalid", s.patch(t, "invalid", `{"spec": {"podTemplateSpec": {"metadata": "labels"}}}`), status.InProgressStatus)
	s.await(t, "made invalid", "invalid", status.FailedStatus, "spec.podTemplateSpec", "metadata")

	s.create(t, "early", `{"image": "example.com/mcp:1", "transport": "streamable-http", "oidcConfigRef": {"name": "idp", "audience": "web"}}`)
	s.await(t, "without the configuration that it refers to", "early", status.FailedStatus, "MCPOIDCConfig", `idp`)
	idp := &v1beta1.MCPOIDCConfig{ObjectMeta: metav1.ObjectMeta{Name: "idp"}}
	if err := json.Unmarshal([]byte(specs[v1beta1.MCPOIDCConfigKind].valid), &idp.Spec); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Servers.ToolhiveV1beta1().MCPOIDCConfigs(s.Name).Create(t.Context(), idp, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "with the configuration that it refers to", "early", status.CurrentStatus)
	s.believeServers(t)
}
