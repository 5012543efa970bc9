// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAFieldThatTheAPIServerDropsIsAskedFor: kubectl apply without strict validation sends a field that the CRD does not have, such as a
// typo, or one of an older ToolHive, and the API server stores the object without it. The MCPServer that asked for authentication does not
// run without, and one that runs stays as it is.
func TestAFieldThatTheAPIServerDropsIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	kubectl := s.Kubectl(t)
	apply := func(validate, kind, name, spec string) {
		t.Helper()
		kubectl.Do(t, harness.Call{
			Args:  []string{"apply", "--validate=" + validate, "-f", "-"},
			Input: fmt.Sprintf(`{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": %q, "metadata": {"name": %q}, "spec": {%s}}`, kind, name, spec),
		})
	}
	const server, image = v1beta1.MCPServerKind, `"image": "example.com/mcp:1", "transport": "streamable-http", "proxyPort": 8080`
	const inline = `"type": "inline", "inline": {"issuer": "https://idp.example.com"`
	apply("strict", server, "running", image)
	s.AwaitStatus(t, "running", harness.Fine...)
	s.AwaitRest(t)
	running := s.ChildVersions(t)["running"]

	apply("ignore", "MCPOIDCConfig", "idp", inline+`, "audiences": ["mine"]}`)
	apply("ignore", server, "typo", image+`, "oidcConfigref": {"name": "idp", "audience": "mine"}`)
	apply("ignore", server, "running", image+`, "args": ["--more"], "oidcConfig": {"type": "inline"}`)
	apply("strict", server, "refers", image+`, "oidcConfigRef": {"name": "idp", "audience": "mine"}`)
	stored, _, _ := unstructured.NestedMap(s.MustObject(t, harness.ServerItself, "typo").Object, "spec")
	for field := range stored {
		if strings.EqualFold(field, "oidcConfigRef") {
			t.Errorf("the API server has stored %v", stored)
		}
	}
	s.AwaitStatus(t, "typo", invalidSpec("DroppedField", `dropped "spec.oidcConfigref"`, "--validate=strict"))
	s.AwaitStatus(t, "running", invalidSpec("DroppedField", `dropped "spec.oidcConfig"`))
	s.AwaitStatus(t, "refers", harness.Expectation{
		Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonOIDCConfigRefNotValid,
		Message: []string{`dropped "spec.inline.audiences"`},
	})
	s.AwaitRest(t)
	for _, name := range []string{"typo", "refers"} {
		if _, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s has a proxy: %v", name, err)
		}
	}
	if changed := running.Changed(s.ChildVersions(t)["running"]); len(changed) > 0 {
		t.Errorf("these children of one that runs changed: %v", changed)
	}

	apply("strict", "MCPOIDCConfig", "idp", inline+`}`)
	apply("strict", server, "typo", image+`, "oidcConfigRef": {"name": "idp", "audience": "mine"}`)
	kubectl.Run(t, "annotate", "mcpserver/running", "kubectl.kubernetes.io/last-applied-configuration-")
	for _, name := range []string{"typo", "running", "refers"} {
		s.AwaitStatus(t, name, harness.Fine...)
	}
	for _, name := range []string{"typo", "refers"} {
		s.runConfigShows(t, name, "https://idp.example.com")
	}
}
