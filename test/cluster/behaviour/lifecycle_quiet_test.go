// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// idleVariable is the environment variable with the time for which a settled fleet is watched, as a Go duration.
	idleVariable = "FREEHOLD_IDLE"
	// idleDefault is that time when the variable is not set. What Freehold promises is 2m.
	idleDefault = 30 * time.Second
	// fleetSize is a number of MCPServers.
	fleetSize = 100
	// fleetTimeout is how long they may take until all is settled.
	fleetTimeout = 5 * time.Minute
)

// TestNothingIsWrittenWhenNothingHappens looks at a fleet that has all it needs. Nothing is written, and nothing is asked for: not while
// time passes, not when others write to fields that are theirs, not when an operator starts, not when it looks at everything again.
func TestNothingIsWrittenWhenNothingHappens(t *testing.T) {
	idle := idleTime(t)
	ns := env.Namespace(t)
	beginning := ns.Mark(t)
	first := ns.Operate(t)
	fleet := harness.Fleet(fleetSize)
	began := time.Now()
	ns.Launch(t, fleet)
	ns.AwaitAllSettled(t, len(fleet), fleetTimeout)
	t.Logf("%d MCPServers settled in %v", len(fleet), time.Since(began).Round(time.Millisecond))
	// So much for the work. The rest is waiting, which others can use.
	t.Parallel()
	harness.AwaitLooks(t, first, 0)
	checkFleetOwnership(t, ns)
	checkInformers(t, ns, beginning)

	began = time.Now()
	mark := ns.Mark(t)
	versions := ns.Versions(t)
	ns.Quiet(t, mark, idle)
	t.Logf("%d MCPServers: no request in %v", len(fleet), time.Since(began).Round(time.Millisecond))
	checkVersions(t, ns, versions)

	looked := looksAt(t, first)
	claimFleet(t, ns, fleet)
	harness.AwaitLooks(t, first, looked+len(fleet))
	ns.Quiet(t, mark, harness.Calm)
	t.Log("no request after others wrote to their fields")

	joinGroup(t, ns, fleet)
	ns.AwaitAllSettled(t, len(fleet), fleetTimeout)
	harness.AwaitLooks(t, first, 0)
	harness.Stop(t, first)
	versions = ns.Versions(t)
	mark = ns.Mark(t)
	second := ns.Operate(t, "--resync-period="+harness.ShortResync.String())
	harness.AwaitLooks(t, second, len(fleet))
	looked = looksAt(t, second)
	ns.Quiet(t, mark, harness.Calm)
	t.Logf("no request after a restart, %d looks", looked)

	harness.AwaitLooks(t, second, looked+2*len(fleet))
	ns.Quiet(t, mark, harness.Calm)
	t.Logf("no request after two resyncs, %d looks", looksAt(t, second))
	checkVersions(t, ns, versions)
	checkFleetClaims(t, ns, fleet)
}

// idleTime is the time for which the fleet is watched.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(idleVariable)
	if text == "" {
		return idleDefault
	}
	idle, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", idleVariable, err)
	}
	return idle
}

func checkVersions(t *testing.T, ns *harness.Namespace, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, ns.Versions(t)); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
}

// checkInformers looks at what an operator has read since the mark: each of its informers was filled by one stream of
// events, which may have ended and gone on. There is one for MCPServers, each kind that they refer to and each kind of child, of ConfigMaps
// one for each of the labels that they are selected by, one for the pods with the label of an MCPServer, and one for each ConfigMap that
// an MCPServer refers to.
func checkInformers(t *testing.T, ns *harness.Namespace, since audit.Mark) {
	t.Helper()
	events, _, err := env.Audit.Since(since, ns.ByOperator(), audit.Succeeded(), audit.Not(audit.Writes()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range events {
		if goesOn := e.Verb == "watch" && !strings.Contains(e.URI, "sendInitialEvents=true"); !goesOn {
			got[strings.TrimSpace(e.Verb+" "+e.Resource+" "+e.Name)]++
		}
	}
	want := map[string]int{}
	for _, resource := range []string{
		"mcpservers", "pods", "deployments", "replicasets", "statefulsets", "services", "configmaps", "serviceaccounts", "roles",
		"rolebindings", "configmaps fleet-policy", "mcpoidcconfigs", "mcpauthzconfigs", "mcpexternalauthconfigs", "mcptoolconfigs",
		"mcptelemetryconfigs", "mcpwebhookconfigs", "mcpgroups",
	} {
		want["watch "+resource] = 1
	}
	want["watch configmaps"] = 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the operator did not read what it should (-want +got):\n%s", diff)
	}
}

// looksAt is how often an operator has looked at an MCPServer and found its status to be as it should.
func looksAt(t *testing.T, p *operator.Process) int {
	t.Helper()
	looks, err := harness.Metric(t.Context(), p, "freehold_writes_total", `writer="freehold-status"`, `outcome="unchanged"`)
	if err != nil {
		t.Fatal(err)
	}
	return int(looks)
}

const (
	stranger = "stranger"
	coOwner  = "co-owner"
)

// claimFleet lets others write to the children: a label on each Deployment, an annotation on each StatefulSet and each
// proxy Service, and a value that is already so, applied by one who owns it from now on as well.
func claimFleet(t *testing.T, ns *harness.Namespace, fleet []*v1beta1.MCPServer) {
	t.Helper()
	harness.Each(t, fleet, func(server *v1beta1.MCPServer) error {
		ctx := t.Context()
		label := harness.Add("/metadata/labels/example.com~1foreign", "here")
		if _, err := ns.Patch(ctx, stranger, harness.Proxy, server.Name, label); err != nil {
			return err
		}
		annotation := harness.Add("/metadata/annotations/example.com~1foreign", "here")
		for _, component := range []harness.Component{harness.Backend, harness.ProxyService} {
			if _, err := ns.Patch(ctx, stranger, component, server.Name, annotation); err != nil {
				return err
			}
		}
		_, err := ns.Apply(ctx, coOwner, harness.Proxy, server.Name, false, map[string]any{
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"serviceAccountName": server.Name + "-proxy-runner",
			}}},
		})
		return err
	})
}

// joinGroup edits each MCPServer in a way that concerns no child. Those stay what an earlier generation made them.
func joinGroup(t *testing.T, ns *harness.Namespace, fleet []*v1beta1.MCPServer) {
	t.Helper()
	harness.Each(t, fleet, func(server *v1beta1.MCPServer) error {
		group := harness.Add("/spec/groupRef", map[string]any{"name": "another"})
		_, err := ns.Patch(t.Context(), harness.Author, harness.ServerItself, server.Name, group)
		return err
	})
}

func checkFleetClaims(t *testing.T, ns *harness.Namespace, fleet []*v1beta1.MCPServer) {
	t.Helper()
	all, err := ns.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range fleet {
		components := all[server.Name]
		if components[harness.Proxy].GetLabels()[harness.ForeignKey] != "here" ||
			components[harness.Backend].GetAnnotations()[harness.ForeignKey] != "here" ||
			components[harness.ProxyService].GetAnnotations()[harness.ForeignKey] != "here" {
			t.Errorf("a field of somebody else is gone from %s", server.Name)
		}
	}
}

func checkFleetOwnership(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	all, err := ns.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, objects := range all {
		for _, wrong := range harness.StrayOwners(harness.ServerOf(t, objects), objects) {
			t.Error(wrong)
		}
	}
}
