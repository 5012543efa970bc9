// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/test/harness"
)

// alteration is a way in which admission changes what Freehold writes.
type alteration struct {
	server *v1beta1.MCPServer
	// component is the child that is altered. condition says of which of its kind, and mutation how, as a list of JSONPatch.
	component           harness.Component
	condition, mutation string
	// path of the field that is altered, as kubectl names it, the value that is sent, and the one that is stored; empty for a field
	// that is removed.
	path, sent, stored string
	// harmless is set where the MCPServer is ready all the same.
	harmless bool
}

// named is a condition of a policy for one object.
func named(kind *inventory.Child) string {
	return fmt.Sprintf("object.metadata.name == %q", kind.Name("web"))
}

// alterations are by name.
var alterations = map[string]alteration{
	"an image with a pinned digest": {
		server: harness.HTTPServer("web"), component: harness.Backend, condition: named(inventory.Backend),
		mutation: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "example.com/mcp@sha256:1"}]`,
		path:     `.spec.template.spec.containers[name="mcp"].image`, sent: "example.com/mcp:1", stored: "example.com/mcp@sha256:1", harmless: true,
	},
	"a label that is removed": {
		server: harness.HTTPServer("web"), component: harness.Backend,
		condition: named(inventory.Backend) + ` && "toolhive-basename" in object.metadata.labels`,
		mutation:  `[JSONPatch{op: "remove", path: "/metadata/labels/toolhive-basename"}]`,
		path:      `.metadata.labels.toolhive-basename`, sent: "web", harmless: true,
	},
	"a number of replicas": {
		server: harness.HTTPServer("web", harness.Replicas(1, 1)), component: harness.Backend,
		condition: named(inventory.Backend) + " && object.spec.replicas == 1",
		mutation:  `[JSONPatch{op: "replace", path: "/spec/replicas", value: 3}]`,
		path:      `.spec.replicas`, sent: "1", stored: "3", harmless: true,
	},
	"two proxies of stdio": {
		server: harness.Server("web", v1beta1.TransportStdio), component: harness.Proxy,
		condition: named(inventory.Proxy) + " && object.spec.replicas == 1",
		mutation:  `[JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]`,
		path:      `.spec.replicas`, sent: "1", stored: "2",
	},
	"the selector of a Service": {
		server: harness.HTTPServer("web"), component: harness.ProxyService, condition: named(inventory.ProxyService),
		mutation: `[JSONPatch{op: "replace", path: "/spec/selector/app", value: "nobody"}]`,
		path:     `.spec.selector.app`, sent: "mcpserver", stored: "nobody",
	},
	"the arguments of the proxy": {
		server: harness.HTTPServer("web"), component: harness.Proxy, condition: named(inventory.Proxy),
		mutation: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/args/0", value: "version"}]`,
		path:     `.spec.template.spec.containers[name="toolhive"].args[0]`, sent: "run", stored: "version",
	},
}

// mutate installs the policy of an alteration. It returns what lifts it.
func (s *stage) mutate(t *testing.T, of alteration) (lift func()) {
	t.Helper()
	resource := harness.FormOf(of.component).Resource
	kind := admissionregistrationv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource}}
	return s.Mutate(t, kind, of.condition, of.mutation)
}

// TestWhatAdmissionStoresOtherwiseIsNamedAndHeals has a policy for each alteration. It is named, costs no request but the retry, and heals
// when the policy is gone: at once if the object changes, and by itself.
func TestWhatAdmissionStoresOtherwiseIsNamedAndHeals(t *testing.T) {
	t.Parallel()
	for name, of := range alterations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, env)
			lift := s.mutate(t, of)
			s.Operate(t)
			s.Create(t, of.server)
			told := harness.Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonAltered}
			told.Message = []string{of.path, of.sent, cmp.Or(of.stored, "nothing")}
			expected := []harness.Expectation{told, {Condition: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: told.Message}}
			if of.harmless {
				told.Status = metav1.ConditionTrue
				expected = []harness.Expectation{told, harness.Fine[0], harness.Fine[3]}
			}
			server := s.AwaitStatus(t, "web", expected...)
			if failed := server.Status.Phase == v1beta1.PhaseFailed; failed == of.harmless {
				t.Errorf("the phase is %s", server.Status.Phase)
			}
			s.AwaitOneWarning(t, "web", told)

			// The retries are of the altered object alone, and nothing else is asked for.
			retry := func(e *audit.Event) bool {
				form := harness.FormOf(of.component)
				return e.Verb == "patch" && e.Resource == form.Resource.Resource && form.Is("web", e.Name)
			}
			s.AwaitRest(t, audit.Not(retry))
			s.Quiet(t, s.Mark(t), harness.Calm, audit.Not(retry))
			altered := s.MustObject(t, of.component, "web")

			lift()
			if of.harmless {
				// What changes is looked at.
				touch := []byte(`{"metadata":{"annotations":{"touched":"true"}}}`)
				if _, err := s.Objects(of.component).Patch(t.Context(), altered.GetName(), types.MergePatchType, touch, metav1.PatchOptions{FieldManager: "them"}); err != nil {
					t.Fatal(err)
				}
			}
			s.AwaitStatus(t, "web", harness.Fine...)
			if got := fmt.Sprint(harness.ValueAt(s.MustObject(t, of.component, "web").Object, strings.TrimSuffix(of.path, "[0]"))); !strings.Contains(got, of.sent) {
				t.Errorf("%s is %s, not %s", of.path, got, of.sent)
			}
		})
	}
}

// TestRemovedManagedFieldsLeaveNoConflict has a policy that removes managedFields from what is written, as some webhooks do. The API server
// then refuses changes as conflicts with a manager that does not exist. Once the policy has ended, everything is written.
func TestRemovedManagedFieldsLeaveNoConflict(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]admissionregistrationv1.Rule{
		"of a Service":     {APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
		"of the MCPServer": {APIGroups: []string{v1beta1.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"mcpservers", "mcpservers/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, env)
			lift := s.Mutate(t, kind, "has(object.metadata.managedFields)", `[JSONPatch{op: "remove", path: "/metadata/managedFields"}]`)
			s.Operate(t)
			created := s.Mark(t)
			s.Create(t, harness.HTTPServer("web"))
			s.AwaitWrites(t, created, "the proxy", func(events []*audit.Event) bool {
				return harness.CountWrites("web", events)[string(harness.Proxy)] > 0
			})
			s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9090 })
			if name == "of a Service" {
				s.AwaitStatus(t, "web", harness.Expectation{
					Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonAltered, Message: []string{"managedFields"},
				})
			} else {
				s.AwaitRest(t, func(e *audit.Event) bool { return e.Code != http.StatusConflict && e.Resource != "mcpservers" })
			}
			lift()
			s.AwaitStatus(t, "web", harness.Fine...)
			if port := fmt.Sprint(harness.ValueAt(s.MustObject(t, harness.ProxyService, "web").Object, ".spec.ports")); !strings.Contains(port, "9090") {
				t.Errorf("the Service has the ports %s", port)
			}
		})
	}
}

// TestRemovedManagedFieldsLeaveNoConflictOfAConfig is the same of a configuration, whose status the CRD defaults.
func TestRemovedManagedFieldsLeaveNoConflictOfAConfig(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	config := managers.ConfigOf(v1beta1.Kind(v1beta1.MCPOIDCConfigKind))
	lift := s.Mutate(t, admissionregistrationv1.Rule{
		APIGroups: []string{config.Group}, APIVersions: []string{"*"}, Resources: []string{config.Resource, config.Resource + "/status"},
	}, "has(object.metadata.managedFields)", `[JSONPatch{op: "remove", path: "/metadata/managedFields"}]`)
	s.Operate(t, "--configs=freehold")
	created := s.Mark(t)
	s.idp(t)
	s.AwaitWrites(t, created, "a refused status", func(events []*audit.Event) bool {
		return slices.ContainsFunc(events, func(e *audit.Event) bool { return e.Resource == config.Resource && e.Code == http.StatusConflict })
	})
	lift()
	s.awaitCondition(t, config.Resource, "idp", v1beta1.ConditionValid, "True", "ConfigValid")
}
