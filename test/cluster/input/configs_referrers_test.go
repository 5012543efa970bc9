// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// A config that is being deleted stays while an MCPServer or a VirtualMCPServer refers to it, costs no request meanwhile, and goes
// within a second of the last reference.
func TestDeletionIsHeld(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	withOthers(t, s)
	s.Operate(t, "--configs=freehold")
	s.idp(t)
	s.awaitCondition(t, "mcpoidcconfigs", "idp", "Valid", "True", "ConfigValid")
	s.make(t, "VirtualMCPServer", "virtualmcpservers", "front", `{"incomingAuth": {"oidcConfigRef": {"name": "idp"}}}`)
	s.Create(t, harness.HTTPServer("web", func(server *v1beta1.MCPServer) {
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "idp", Audience: "web"}
	}))
	s.AwaitSettled(t, "web")
	s.AwaitOperatorRest(t)
	s.delete(t, "mcpoidcconfigs", "idp")
	held := s.awaitCondition(t, "mcpoidcconfigs", "idp", "DeletionBlocked", "True", "ReferencedByWorkloads")
	if got := condition(held, "DeletionBlocked")["message"]; got != "Cannot delete: referenced by workloads: [{MCPServer web} {VirtualMCPServer front}]" {
		t.Errorf("message %q", got)
	}
	if server := s.AwaitReady(t, "web"); server.DeletionTimestamp != nil {
		t.Error("the MCPServer is being deleted")
	}
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), 5*time.Second, audit.Any(about, counted))

	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.OIDCConfigRef = nil })
	s.await(t, "mcpoidcconfigs", "idp", "one referrer is left", func(live *unstructured.Unstructured) error {
		if message := fmt.Sprint(condition(live, "DeletionBlocked")["message"]); !strings.HasSuffix(message, "[{VirtualMCPServer front}]") {
			return fmt.Errorf("message %q", message)
		}
		return nil
	})
	mark := s.Mark(t)
	s.delete(t, "virtualmcpservers", "front")
	s.awaitGone(t, "mcpoidcconfigs", "idp")
	released := s.AwaitWrites(t, mark, "the release", func(writes []*audit.Event) bool {
		return slices.ContainsFunc(writes, isRelease)
	})
	deletions, _, err := env.Audit.Since(mark, audit.Verb("delete"), audit.Namespace(s.Name), audit.Resource(v1beta1.SchemeGroupVersion.Group, "virtualmcpservers"))
	if err != nil || len(deletions) != 1 {
		t.Fatalf("%d deletions of the last referrer, %v", len(deletions), err)
	}
	deleted, done := deletions[0].Received, released[slices.IndexFunc(released, isRelease)].Received
	took := harness.AtPace(deleted, done.Sub(deleted))
	t.Logf("released %v after the last reference", took)
	if took > time.Second {
		t.Errorf("released %v after the last reference", took)
	}
	if got := s.events(t, "MCPOIDCConfig", "idp"); !slices.Equal(got, []string{"DeletionBlocked"}) {
		t.Errorf("events %q", got)
	}
}

func isRelease(e *audit.Event) bool {
	return e.FieldManager == managers.ConfigFinalizer && e.Resource == "mcpoidcconfigs" && e.Succeeded()
}

// counted wants requests about what may refer to configs.
func counted(e *audit.Event) bool {
	return e.Verb == "list" && e.Group == v1beta1.SchemeGroupVersion.Group
}

// An MCPServer that is being deleted holds nothing: both go.
func TestServerAndConfigGoTogether(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Operate(t, "--configs=freehold")
	s.idp(t)
	s.Create(t, harness.HTTPServer("web", func(server *v1beta1.MCPServer) {
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "idp", Audience: "web"}
	}))
	s.AwaitSettled(t, "web")
	s.Delete(t, "web", metav1.DeletePropagationBackground)
	s.delete(t, "mcpoidcconfigs", "idp")
	s.awaitGone(t, "mcpoidcconfigs", "idp")
	s.AwaitGone(t, "web")
}

// A group lists its members of three kinds, follows them, and its deletion waits for nobody.
func TestAGroupListsItsMembers(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	withOthers(t, s)
	s.Operate(t, "--configs=freehold")
	member := func(server *v1beta1.MCPServer) { server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "team"} }
	s.Create(t, harness.HTTPServer("web", member)) // before its group
	s.Create(t, harness.HTTPServer("api", member))
	s.make(t, "MCPGroup", "mcpgroups", "team", "{}")
	s.make(t, "MCPGroup", "mcpgroups", "spare", "{}")
	s.make(t, "MCPRemoteProxy", "mcpremoteproxies", "far", `{"groupRef": {"name": "team"}}`)
	s.make(t, "MCPServerEntry", "mcpserverentries", "aside", `{"groupRef": {"name": "team"}}`)
	has := func(group string, want map[string]string) {
		t.Helper()
		s.await(t, "mcpgroups", group, fmt.Sprintf("%s has %v", group, want), func(live *unstructured.Unstructured) error {
			for field, value := range want {
				if got := fmt.Sprint(valueAt(live, "status."+field)); got != value {
					return fmt.Errorf("status %v", live.Object["status"])
				}
			}
			return nil
		})
	}
	has("team", map[string]string{
		"phase": "Ready", "servers": "[api web]", "serverCount": "2", "remoteProxies": "[far]", "remoteProxyCount": "1", "entries": "[aside]", "entryCount": "1",
	})
	has("spare", map[string]string{"phase": "Ready", "servers": "<nil>"})
	s.AwaitServer(t, "web", "the group is valid", func(server *v1beta1.MCPServer) error {
		for _, c := range server.Status.Conditions {
			if c.Type == v1beta1.ConditionGroupRefValidated && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", server.Status.Conditions)
	})
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.GroupRef.Name = "spare" })
	s.delete(t, "mcpremoteproxies", "far")
	has("team", map[string]string{"servers": "[api]", "serverCount": "1", "remoteProxies": "<nil>", "remoteProxyCount": "<nil>"})
	has("spare", map[string]string{"servers": "[web]"})
	s.delete(t, "mcpgroups", "team")
	s.awaitGone(t, "mcpgroups", "team")
}
