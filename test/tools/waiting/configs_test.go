// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// soon is how long a new object is without a status where nothing of ToolHive's operator is seen. The API server's times are whole seconds.
const soon = 2 * time.Second

// specs are specs of each kind, as JSON: two that can be used, and one that cannot. The definitions of MCPToolConfig and MCPGroup admit
// none that cannot.
var specs = map[string]struct{ valid, other, invalid string }{
	v1beta1.MCPOIDCConfigKind: {
		`{"type": "inline", "inline": {"issuer": "https://idp.example.com"}}`, `{"type": "inline", "inline": {"issuer": "https://other.example.com"}}`,
		`{"type": "inline", "inline": {"issuer": "http://idp.example.com"}}`,
	},
	v1beta1.MCPAuthzConfigKind: {
		`{"type": "cedarv1", "config": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}}`,
		`{"type": "cedarv1", "config": {"policies": ["forbid(principal, action, resource);"], "entities_json": "[]"}}`,
		`{"type": "nonsense", "config": {}}`,
	},
	v1beta1.MCPExternalAuthConfigKind: {
		`{"type": "unauthenticated"}`, `{"type": "bearerToken", "bearerToken": {"tokenSecretRef": {"name": "token", "key": "token"}}}`, `{"type": "obo", "obo": {}}`,
	},
	v1beta1.MCPToolConfigKind: {`{"toolsFilter": ["a"]}`, `{"toolsFilter": ["b"]}`, ""},
	v1beta1.MCPTelemetryConfigKind: {
		`{"prometheus": {"enabled": true}}`, `{"prometheus": {"enabled": false}}`, `{"openTelemetry": {"enabled": true, "endpoint": "otel:4318"}}`,
	},
	v1beta1.MCPWebhookConfigKind: {
		`{"validating": [{"name": "a", "url": "https://a.example.com"}]}`, `{"validating": [{"name": "b", "url": "https://b.example.com"}]}`,
		`{"validating": [{"name": "a", "url": "http://a.example.com"}]}`,
	},
	v1beta1.MCPGroupKind: {`{}`, `{"description": "the team"}`, ""},
}

// TestVerdictOnEachKindThatMCPServersReferTo follows an object of each kind through its life. It is done when an operator has found its
// present spec valid, and has failed when its present spec is invalid. Nothing of ToolHive is there, so that takes no minute.
func TestVerdictOnEachKindThatMCPServersReferTo(t *testing.T) {
	t.Parallel()
	for _, row := range managers.Configs() {
		t.Run(row.Kind, func(t *testing.T) {
			t.Parallel()
			spec := specs[row.Kind]
			if spec.valid == "" {
				t.Fatal("no spec of this kind is here")
			}
			s := newScene(t, row.GroupVersionKind, row.Resource)
			must(t, "created while no operator runs", s.create(t, "early", spec.valid), status.InProgressStatus)
			s.Operate(t)
			s.await(t, "once an operator has looked", "early", status.CurrentStatus)

			must(t, "created", s.create(t, "it", spec.valid), status.InProgressStatus)
			if took := statusAfter(s.await(t, "once an operator has looked", "it", status.CurrentStatus)); took > soon {
				t.Errorf("it had no status for %v", took)
			}
			must(t, "edited", s.replace(t, "it", spec.other), status.InProgressStatus)
			s.await(t, "edited", "it", status.CurrentStatus)
			if spec.invalid != "" {
				s.fail(t, spec.invalid, spec.valid)
			}
			s.end(t, "it")
			s.believe(t, func(live *unstructured.Unstructured) bool {
				return conditionIs(live, v1beta1.ConditionValid, metav1.ConditionTrue) || conditionIs(live, v1beta1.ConditionMCPServersChecked, metav1.ConditionTrue)
			}, func(live *unstructured.Unstructured) bool {
				return conditionIs(live, v1beta1.ConditionValid, metav1.ConditionFalse)
			})
		})
	}
}

// fail makes the spec of an object invalid, and mends it. Another one is invalid from the start.
func (s *scene) fail(t *testing.T, invalid, valid string) {
	t.Helper()
	must(t, "made invalid", s.replace(t, "it", invalid), status.InProgressStatus)
	failed := s.await(t, "made invalid", "it", status.FailedStatus)
	why := conditionOf(failed, v1beta1.ConditionValid)
	if got := judge(t, failed); why == nil || got.Message != why.Message {
		t.Errorf("it has failed: %q; status %v", got.Message, failed.Object["status"])
	}
	must(t, "mended", s.replace(t, "it", valid), status.InProgressStatus)
	s.await(t, "mended", "it", status.CurrentStatus)

	must(t, "created invalid", s.create(t, "invalid", invalid), status.InProgressStatus)
	s.await(t, "created invalid", "invalid", status.FailedStatus, why.Message)
}

// replace gives an object another spec, of which nothing of the present one is left.
func (s *scene) replace(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec", "value": %s}]`, spec)
	live, err := s.objects.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// statusAfter returns how long after its creation an object was given the first status, as its managedFields say.
func statusAfter(live *unstructured.Unstructured) time.Duration {
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "status" && entry.Time != nil {
			return entry.Time.Sub(live.GetCreationTimestamp().Time)
		}
	}
	panic(fmt.Sprintf("no manager owns the status of %s", live.GetName()))
}
