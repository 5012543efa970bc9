// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// virtual is a VirtualMCPServer for the MCPServers of a group, as users write one. It looks at its members more often than it
// does unless told.
const (
	virtualName = "all"
	groupName   = "tools"
	virtualYAML = `
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPGroup
metadata: {name: ` + groupName + `}
spec: {description: Everything that the team uses.}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: VirtualMCPServer
metadata: {name: ` + virtualName + `}
spec:
  groupRef: {name: ` + groupName + `}
  incomingAuth: {type: anonymous}
  outgoingAuth: {source: discovered}
  config:
    aggregation:
      conflictResolution: prefix
      conflictResolutionConfig: {prefixFormat: "{workload}_"}
    operational:
      failureHandling: {healthCheckInterval: 2s, healthCheckTimeout: 1s, unhealthyThreshold: 1, statusReportingInterval: 2s}
`
)

// refusedAtMost is how often ToolHive's operator may try to write what the policy keeps from it. It tries again at each change
// that it sees, and after pauses that double.
const refusedAtMost = 600

func grouped(server *v1beta1.MCPServer) { server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: groupName} }

// TestVirtualMCPServer has ToolHive's operator run a VirtualMCPServer, with its own server in a pod, for the MCPServers of a group.
// Freehold takes one MCPServer over that ToolHive's operator has made, while that operator goes on for its other kinds, and makes
// another one. The VirtualMCPServer serves the tools of both, at the addresses in their status, follows the group, and goes on
// with what serves, whatever its phase. The policy for that keeps ToolHive's operator from every MCPServer and its children.
func TestVirtualMCPServer(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	archives, err := images.Write(t.Context(), t.TempDir(), os.Stderr, images.VirtualMCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Import(t.Context(), archives...); err != nil {
		t.Fatal(err)
	}
	ns := env.Namespace(t)
	upstream(t, ns)
	client, err := dynamic.NewForConfig(ns.Config)
	if err != nil {
		t.Fatal(err)
	}
	members := []*member{{server: tested("first", v1beta1.TransportStreamableHTTP, grouped), before: virtualYAML}}
	v := &virtual{world: settle(t, ns, members), dynamic: client}
	v.awaitTools(t, "first")
	t.Log("the VirtualMCPServer serves what ToolHive's operator has made")

	v.keepToolHiveAway(t, "first")
	mark := ns.Mark(t)
	ns.Operate(t, byFreehold()...)
	v.awaitTaken(t, members[0])
	v.awaitTools(t, "first")
	t.Log("it serves what Freehold has taken over")

	ns.Create(t, tested("second", v1beta1.TransportStdio, grouped))
	v.awaitTools(t, "first", "second")
	v.calls(t, "first", "second")
	t.Log("it serves what Freehold has made")

	// ToolHive's operator writes an address once and never again.
	ns.Edit(t, "second", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 8181 })
	v.AwaitServer(t, "second", "has its new address", func(server *v1beta1.MCPServer) error {
		if !strings.Contains(server.Status.URL, ":8181/") {
			return fmt.Errorf("its URL is %s", server.Status.URL)
		}
		return nil
	})
	v.AwaitSettled(t, "second")
	v.awaitTools(t, "first", "second")
	v.calls(t, "second")
	t.Log("it has the new address")

	// It cannot be used, so the proxy goes on with what it has, and the VirtualMCPServer with the proxy.
	ns.Edit(t, "first", func(server *v1beta1.MCPServer) {
		server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "missing"}
	})
	v.AwaitServer(t, "first", "has failed", func(server *v1beta1.MCPServer) error {
		if server.Status.Phase != v1beta1.PhaseFailed {
			return fmt.Errorf("its phase is %s", server.Status.Phase)
		}
		return nil
	})
	v.calls(t, "first")
	v.awaitTools(t, "first", "second")
	t.Log("it serves what has failed and runs")

	ns.Edit(t, "second", func(server *v1beta1.MCPServer) { server.Spec.GroupRef = nil })
	v.awaitTools(t, "first")
	t.Log("it leaves out what has left the group")
	ns.Delete(t, "second", metav1.DeletePropagationBackground)
	ns.AwaitGone(t, "second")
	ns.Edit(t, "first", func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = nil })
	ns.AwaitSettled(t, "first")

	// ToolHive's operator would tell the members of the end of their group, and is refused that too.
	groups := env.Servers.ToolhiveV1beta1().MCPGroups(ns.Name)
	if err := groups.Delete(t.Context(), groupName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.AwaitStatus(t, "first", harness.Expectation{
		Condition: v1beta1.ConditionGroupRefValidated, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonGroupRefNotFound,
	})
	harness.Eventually(t, "the end of the group", func(ctx context.Context) error {
		if _, err := groups.Get(ctx, groupName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	ns.AwaitSettled(t, "first")
	v.checkApart(t, mark, "first", "second")
	ns.Quiet(t, ns.Mark(t), harness.Calm)
}

// virtual is the VirtualMCPServer in its world.
type virtual struct {
	*world
	dynamic dynamic.Interface
}

// backend is what a VirtualMCPServer tells of a member of its group.
type backend struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Status string `json:"status"`
}

// awaitTools waits until the members of the group are these MCPServers: in its status, in that of the VirtualMCPServer, with
// the addresses that are in theirs, and by the tools that a client of the VirtualMCPServer sees.
func (v *virtual) awaitTools(t *testing.T, members ...string) {
	t.Helper()
	client := mcpclient.DialService(t, v.Namespace, machine, "vmcp-"+virtualName, "")
	began := time.Now()
	harness.Eventually(t, fmt.Sprintf("the VirtualMCPServer serves %v", members), func(ctx context.Context) error {
		if err := v.tells(ctx, members); err != nil {
			return err
		}
		outcome := client.List(ctx)
		if outcome.Err != nil {
			return outcome.Err
		}
		var want []string
		for _, member := range members {
			for _, tool := range []string{"echo", "headers", "identity"} {
				want = append(want, member+"_"+tool)
			}
		}
		if got := mcpclient.Names(outcome.Tools); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			return fmt.Errorf("its tools are %v, want %v", got, want)
		}
		return nil
	})
	t.Logf("it served %v after %v", members, harness.Since(began))
}

// tells checks what the group and the VirtualMCPServer tell of the members.
func (v *virtual) tells(ctx context.Context, members []string) error {
	group, err := v.Env.Servers.ToolhiveV1beta1().MCPGroups(v.Name).Get(ctx, groupName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !slices.Equal(group.Status.Servers, members) || int(group.Status.ServerCount) != len(members) || group.Status.Phase != v1beta1.MCPGroupPhaseReady {
		return fmt.Errorf("the group is %+v", group.Status)
	}
	object, err := v.dynamic.Resource(v1beta1.SchemeGroupVersion.WithResource("virtualmcpservers")).Namespace(v.Name).
		Get(ctx, virtualName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var seen struct {
		Status struct {
			Phase              string    `json:"phase"`
			Message            string    `json:"message"`
			DiscoveredBackends []backend `json:"discoveredBackends"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &seen); err != nil {
		return err
	}
	var want []backend
	for _, member := range members {
		server, err := v.Servers.Get(ctx, member, metav1.GetOptions{})
		if err != nil {
			return err
		}
		want = append(want, backend{Name: member, URL: server.Status.URL, Status: "ready"})
	}
	got := seen.Status.DiscoveredBackends
	slices.SortFunc(got, func(a, b backend) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(got, want) || seen.Status.Phase != string(v1beta1.PhaseReady) {
		return fmt.Errorf("it is %s, %s, with %v, want %v", seen.Status.Phase, seen.Status.Message, got, want)
	}
	return nil
}

// calls asks for an echo of each member through the VirtualMCPServer. That may call an address that it knew before for a moment.
func (v *virtual) calls(t *testing.T, members ...string) {
	t.Helper()
	client := mcpclient.DialService(t, v.Namespace, machine, "vmcp-"+virtualName, "")
	for _, member := range members {
		harness.Eventually(t, "the echo of "+member+" through the VirtualMCPServer", func(ctx context.Context) error {
			outcome := client.Call(ctx, member+"_echo", map[string]any{"text": "hello " + member})
			if outcome.Err != nil || outcome.Text != "hello "+member {
				return fmt.Errorf("it is %v", outcome)
			}
			return nil
		})
	}
}

// keepToolHiveAway installs the policy for clusters with both operators, for this namespace alone, until the test ends. It
// returns once ToolHive's operator is refused a write to the MCPServer.
func (v *virtual) keepToolHiveAway(t *testing.T, server string) {
	t.Helper()
	name := v.InstallPolicies(t, policy.BesideToolHive)("freehold-toolhive-operator")
	config, err := env.Cluster.ServiceAccountConfig(t.Context(), toolhive.Namespace, toolhive.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		_, err := theirs.ToolhiveV1beta1().MCPServers(v.Name).Patch(ctx, server, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"example.com/by":"toolhive"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), name) {
			return fmt.Errorf("not refused: %w", errors.Join(err, errors.New("dry run")))
		}
		return nil
	})
}

// checkApart checks that since the mark ToolHive's operator has written nothing of the MCPServers, Freehold nothing of the
// group's, and that neither went on trying.
func (v *virtual) checkApart(t *testing.T, since audit.Mark, servers ...string) {
	t.Helper()
	events, _, err := v.Audit.Since(since, v.byOperators)
	if err != nil {
		t.Fatal(err)
	}
	count, refused := map[string]int{}, 0
	for _, e := range events {
		byToolHive := e.User == toolHivesOperator
		count[fmt.Sprintf("%s: %s %s/%s %d", e.User, e.Verb, e.Resource, e.Subresource, e.Code)]++
		switch {
		case byToolHive && !e.Succeeded():
			refused++
		case byToolHive && ofAny(e, servers):
			t.Errorf("ToolHive's operator has written: %v", e)
		case !byToolHive && e.Resource == "mcpgroups":
			t.Errorf("Freehold has written: %v", e)
		}
	}
	for _, what := range sortedKeys(count) {
		t.Logf("%s: %d", what, count[what])
	}
	if refused == 0 || refused > refusedAtMost {
		t.Errorf("ToolHive's operator was refused %d requests", refused)
	}
}

// ofAny tells whether a request is about one of the MCPServers, or about what belongs to it by its name.
func ofAny(e *audit.Event, servers []string) bool {
	for _, server := range servers {
		for _, component := range harness.ComponentsOf(harness.ServerWithAllChildren(server)) {
			form := harness.FormOf(component)
			if form.Resource.Resource == e.Resource && form.Is(server, e.Name) {
				return true
			}
		}
	}
	return false
}
