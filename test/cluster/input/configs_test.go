// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/test/harness"
)

// specs is a valid spec of each kind.
var specs = map[string]string{
	"MCPOIDCConfig":         oidcSpec,
	"MCPAuthzConfig":        `{"type": "cedarv1", "config": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}}`,
	"MCPExternalAuthConfig": `{"type": "unauthenticated"}`,
	"MCPToolConfig":         `{"toolsFilter": ["a"]}`,
	"MCPTelemetryConfig":    `{"prometheus": {"enabled": true}}`,
	"MCPWebhookConfig":      `{"validating": [{"name": "a", "url": "https://a.example.com"}]}`,
	"MCPGroup":              `{}`,
}

const theirStatus = `{"configHash": "theirs", "observedGeneration": 1, "conditions": [{
	"type": "Valid", "status": "True", "reason": "ConfigValid", "message": "theirs", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}`

// Every kind gets a finalizer and a status, by two writes, and nothing is written after that, not by another operator either.
func TestEveryKindGetsAFinalizerAndAStatusByTwoWrites(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	before := s.Mark(t)
	p := s.Operate(t, "--configs=freehold")
	var want []string
	for _, config := range managers.Configs() {
		s.make(t, config.Kind, config.Resource, "it", specs[config.Kind])
		conditionType, status := v1beta1.ConditionValid, managers.ConfigStatus
		if config.IsGroup() {
			conditionType, status = v1beta1.ConditionMCPServersChecked, managers.GroupStatus
		}
		live := s.await(t, config.Resource, "it", conditionType, func(live *unstructured.Unstructured) error {
			if condition(live, conditionType)["status"] != "True" || !slices.Equal(live.GetFinalizers(), []string{config.Finalizer}) {
				return fmt.Errorf("finalizers %v, status %v", live.GetFinalizers(), live.Object["status"])
			}
			return nil
		})
		for _, entry := range live.GetManagedFields() {
			if !slices.Contains([]string{"kubectl-create", managers.ConfigFinalizer, status}, entry.Manager) {
				t.Errorf("%s has an entry of %s", config.Kind, entry.Manager)
			}
		}
		want = append(want, fmt.Sprintf("%s %s/it  200", managers.ConfigFinalizer, config.Resource), fmt.Sprintf("%s %s/it status 200", status, config.Resource))
	}
	s.AwaitOperatorRest(t)
	got := s.configWrites(t, before)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	harness.Stop(t, p)
	mark := s.Mark(t)
	again := s.Operate(t) // which needs no flag to see whose they are
	awaitOwner(t, again, "freehold", len(managers.Configs()))
	s.AwaitOperatorRest(t)
	if writes := s.configWrites(t, mark); len(writes) > 0 {
		t.Errorf("writes of another operator: %q", writes)
	}
}

// The status follows the spec, the hash of the last valid one stays, and each turn is told once.
func TestTheStatusOfAConfigFollowsItsSpec(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Operate(t, "--configs=freehold")
	s.idp(t)
	hash := func(live *unstructured.Unstructured) any { return valueAt(live, "status.configHash") }
	valid := s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "True", "ConfigValid")
	s.patch(t, "mcpoidcconfigs", "idp", `{"spec": {"inline": {"issuer": "http://idp.example.com"}}}`)
	invalid := s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "False", "ConfigInvalid")
	if hash(valid) == nil || hash(invalid) != hash(valid) || valueAt(invalid, "status.observedGeneration") != int64(2) {
		t.Errorf("status %v, then %v", valid.Object["status"], invalid.Object["status"])
	}
	s.patch(t, "mcpoidcconfigs", "idp", `{"spec": {"inline": {"issuer": "https://other.example.com"}}}`)
	if again := s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "True", "ConfigValid"); hash(again) == hash(valid) {
		t.Errorf("status %v", again.Object["status"])
	}
	harness.Eventually(t, "two events", func(context.Context) error {
		if got := s.events(t, "MCPOIDCConfig", "idp"); !slices.Equal(got, []string{"ConfigInvalid", "ConfigValid"}) {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
}

func TestANewConfigIsLeftToToolHiveForAMinute(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newSpace(t)
	s.make(t, "MCPToolConfig", "mcptoolconfigs", "tools", specs["MCPToolConfig"])
	s.keepAsToolHive(t, "mcptoolconfigs", "tools", v1beta1.FinalizerToolConfig, theirStatus) // which shows that ToolHive's operator is there
	mark := s.Mark(t)
	p := s.Operate(t)
	awaitOwner(t, p, "toolhive", 1)
	s.idp(t)
	awaitOwner(t, p, "undecided", 1)
	s.Quiet(t, mark, 50*time.Second, about)
	s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "True", "ConfigValid")
	awaitOwner(t, p, "freehold", 1)
}

// TestTakeoverOfConfigs: configs that ToolHive's operator has kept are taken over by one edit and two applies at most, and can be deleted then.
func TestTakeoverOfConfigs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, config := range managers.Configs() {
		s.make(t, config.Kind, config.Resource, "it", specs[config.Kind])
		status := theirStatus
		if config.IsGroup() {
			status = `{"phase": "Ready", "servers": ["gone"], "serverCount": 1, "observedGeneration": 1}`
		}
		s.keepAsToolHive(t, config.Resource, "it", config.Finalizer, status)
	}
	mark := s.Mark(t)
	p := s.Operate(t)
	awaitOwner(t, p, "toolhive", len(managers.Configs()))
	s.AwaitOperatorRest(t)
	if writes := s.configWrites(t, mark); len(writes) > 0 {
		t.Errorf("writes with --configs=auto: %q", writes)
	}
	harness.Stop(t, p)
	p = s.Operate(t, "--configs=freehold")
	awaitOwner(t, p, "freehold", len(managers.Configs()))
	for _, config := range managers.Configs() {
		s.await(t, config.Resource, "it", "it is taken over", func(live *unstructured.Unstructured) error {
			if takeover.Held(live, "") || takeover.Held(live, "status") || valueAt(live, "status.configHash") == "theirs" {
				return fmt.Errorf("managedFields %v, status %v", live.GetManagedFields(), live.Object["status"])
			}
			// The apply that follows the edit of managedFields removes what is no longer so.
			if servers := valueAt(live, "status.servers"); servers != nil {
				return fmt.Errorf("members %v stay", servers)
			}
			return nil
		})
	}
	s.AwaitOperatorRest(t)
	if writes := s.configWrites(t, mark); len(writes) > 3*len(managers.Configs()) {
		t.Errorf("%d writes: %q", len(writes), writes)
	}
	for _, config := range managers.Configs() {
		s.delete(t, config.Resource, "it")
		s.awaitGone(t, config.Resource, "it")
	}
}

// With --configs=toolhive there is not one write.
func TestConfigsLeftToToolHiveAreNotWritten(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.idp(t)
	s.make(t, "MCPGroup", "mcpgroups", "team", "{}")
	s.make(t, "MCPToolConfig", "mcptoolconfigs", "tools", specs["MCPToolConfig"])
	s.keepAsToolHive(t, "mcptoolconfigs", "tools", v1beta1.FinalizerToolConfig, theirStatus)
	mark := s.Mark(t)
	p := s.Operate(t, "--configs=toolhive")
	awaitOwner(t, p, "toolhive", 3)
	s.Create(t, harness.HTTPServer("web", func(server *v1beta1.MCPServer) {
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "idp", Audience: "web"}
		server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "team"}
	}))
	s.patch(t, "mcpoidcconfigs", "idp", `{"spec": {"inline": {"issuer": "http://idp.example.com"}}}`)
	s.delete(t, "mcptoolconfigs", "tools")
	s.AwaitOperatorRest(t)
	if writes := s.configWrites(t, mark); len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
	s.patch(t, "mcptoolconfigs", "tools", `{"metadata": {"finalizers": null}}`)
}

// A second operator that writes the status again and again, up to 50 times a second, is not answered.
func TestASecondOperatorOfAConfigIsNotAnswered(t *testing.T) {
	t.Parallel()
	const puts = 100
	for _, mode := range []string{"auto", "freehold"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.idp(t)
			first := s.Operate(t, "--configs=freehold")
			s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "True", "ConfigValid")
			harness.Stop(t, first)
			p := s.Operate(t, "--configs="+mode)
			awaitOwner(t, p, "freehold", 1)
			s.AwaitOperatorRest(t)
			mark := s.Mark(t)
			ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
			defer cancel()
			for written := 0; written < puts; time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // It is the rate of the writes.
				live, err := s.of("mcpoidcconfigs").Get(ctx, "idp", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if s.putStatus(ctx, "mcpoidcconfigs", live, fmt.Sprintf(`{"configHash": "theirs%d", "conditions": []}`, written)) == nil {
					written++
				}
			}
			awaitOwner(t, p, "toolhive", 1)
			writes := s.configWrites(t, mark)
			t.Logf("%d writes of the other operator, ours: %q", puts, writes)
			if len(writes) > 2 {
				t.Errorf("%d writes are too many", len(writes))
			}
			harness.Eventually(t, "one event", func(context.Context) error {
				if got := s.events(t, "MCPOIDCConfig", "idp"); !slices.Equal(got, []string{v1beta1.ReasonFieldManagerConflict}) {
					return fmt.Errorf("events %q", got)
				}
				return nil
			})
			conflicts, err := harness.Metric(t.Context(), p, "freehold_field_conflicts", `writer="freehold-config-status"`, `manager_class="toolhive"`)
			if err != nil || conflicts == 0 {
				t.Errorf("%v conflicts are told, %v", conflicts, err)
			}
		})
	}
}
