// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// kept are the kinds of what an MCPServer has, as kubectl takes them.
const kept = "deployment,replicaset,statefulset,service,serviceaccount,role,rolebinding,configmap,pod"

// resident is somebody who has Freehold installed, for the whole of a cluster of their own, and is to uninstall it. The pods of the
// operator are fake; a process stands in for them, which loses its rights with its ServiceAccount.
type resident struct {
	*reader
	operator *harness.CrashableOperator
}

// newResident has an MCPServer with all children, and a group that it belongs to, which Freehold holds by finalizers.
func newResident(t *testing.T) *resident {
	t.Helper()
	r := &resident{reader: newReaderOf(t, harness.NewForTest(t))}
	r.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(Root, "deploy", "install-without-crd.yaml"))
	r.kubectl.Run(t, "rollout", "status", "deployment/freehold", "-n", operator.Namespace, "--timeout=3m")
	r.operate(t)
	r.populate(t)
	harness.Eventually(t, "the group has its finalizer", func(ctx context.Context) error {
		found, err := r.kubectl.Try(ctx, harness.Call{Args: []string{"get", "mcpgroup/team", "-o", "jsonpath={.metadata.finalizers}"}})
		if err == nil && !strings.Contains(found, v1beta1.FinalizerGroup) {
			err = fmt.Errorf("its finalizers are %s", found)
		}
		return err
	})
	return r
}

// populate makes the MCPServer and its group, and waits until the operator has done all for the MCPServer.
func (r *resident) populate(t *testing.T) {
	t.Helper()
	r.kubectl.Do(t, harness.Call{
		Args:  []string{"apply", "--server-side", "-f", "-"},
		Input: `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPGroup", "metadata": {"name": "team"}}`,
	})
	r.Create(t, member())
	r.AwaitSettled(t, web)
	r.AwaitCalm(t, web)
}

// member is the MCPServer.
func member() *v1beta1.MCPServer {
	server := harness.ServerWithAllChildren(web)
	server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "team"}
	return server
}

// operate has a process run for the pods, with the rights of the ServiceAccount that is there now.
func (r *resident) operate(t *testing.T) {
	t.Helper()
	if _, err := r.Cluster.ServiceAccountKubeconfig(t.Context(), operator.Namespace, operator.ServiceAccount); err != nil {
		t.Fatal(err)
	}
	r.operator = r.CrashableOperator(t, "--configs=freehold")
}

// crash ends the operator at once.
func (r *resident) crash(t *testing.T) {
	t.Helper()
	if err := r.operator.Kill(); err != nil {
		t.Fatal(err)
	}
}

// left returns what there is in the namespace of the kinds that an MCPServer has, but for what Kubernetes makes in each namespace: names
// and UIDs.
func (r *resident) left(ctx context.Context) (map[string]string, error) {
	out, err := r.kubectl.Try(ctx, harness.Call{Args: []string{
		"get", kept, "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}`,
	}})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		name, uid, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "ConfigMap/kube-root-ca.crt" && name != "ServiceAccount/default" {
			found[name] = uid
		}
	}
	return found, nil
}

func (r *resident) mustHaveLeft(t *testing.T) map[string]string {
	t.Helper()
	found, err := r.left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// awaitNothing waits until nothing of MCPServers is left in the namespace.
func (r *resident) awaitNothing(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the garbage collector has deleted the workloads", func(ctx context.Context) error {
		found, err := r.left(ctx)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("there are %v", slices.Sorted(maps.Keys(found)))
		}
		return err
	})
}

// has reports whether an object is there, such as crd/mcpservers.toolhive.stacklok.dev.
func (r *resident) has(t *testing.T, object ...string) bool {
	t.Helper()
	return r.kubectl.Run(t, append([]string{"get", "--ignore-not-found", "-o", "name"}, object...)...) != ""
}

// checkUninstalled checks that nothing of Freehold's installation is left; its definitions are there or not.
func (r *resident) checkUninstalled(t *testing.T, definitions bool) {
	t.Helper()
	for _, object := range [][]string{
		{"namespace/" + operator.Namespace}, {"clusterrole/freehold", "clusterrole/freehold-view", "clusterrole/freehold-edit"}, {"clusterrolebinding/freehold"},
	} {
		if r.has(t, object...) {
			t.Errorf("%v is still there", object)
		}
	}
	names := strings.Fields(r.kubectl.Run(t, "get", "crd", "-o", "name"))
	if definitions != slices.Contains(names, "customresourcedefinition.apiextensions.k8s.io/"+definitionOfServers) {
		t.Errorf("there are %v", names)
	}
	if !definitions {
		if len(names) > 0 {
			t.Errorf("%v are still there", names)
		}
		return
	}
	if found := r.kubectl.Run(t, "get", "mcpservers,mcpgroups", "-A", "-o", "name"); found != "" {
		t.Errorf("%s is still there", found)
	}
}

// definitionOfServers is that of MCPServers.
const definitionOfServers = "mcpservers.toolhive.stacklok.dev"

// TestUninstallKeepingWorkloads uninstalls Freehold and keeps what MCPServers have: all stays, pods too, without an owner. When it is
// installed again it takes all of that in hand.
func TestUninstallKeepingWorkloads(t *testing.T) {
	harness.Long(t)
	r := newResident(t)
	before := r.mustHaveLeft(t)
	generations := r.generations(t)
	commands := Of(t)
	for i, command := range commands {
		r.types(t, command)
		r.crash(t)
		r.checkUninstalled(t, i < len(commands)-1)
	}
	if owned := r.kubectl.Run(t, "get", kept, "-o", `jsonpath={range .items[*]}{.metadata.ownerReferences[?(@.kind=="MCPServer")].name}{end}`); owned != "" {
		t.Errorf("something is still owned by an MCPServer: %s", owned)
	}
	for name, uid := range before {
		if after := r.mustHaveLeft(t); after[name] != uid {
			t.Errorf("%s was %s and is %s", name, uid, after[name])
		}
	}
	labelled := r.kubectl.Run(t, "get", kept, "-o", "jsonpath={.items[*].kind}", "-l", "toolhive-name="+web) + " " +
		r.kubectl.Run(t, "get", kept, "-o", "jsonpath={.items[*].kind}", "-l", "toolhive.stacklok.io/mcp-server="+web)
	if len(strings.Fields(labelled)) != len(before) {
		t.Errorf("of %v these have a label that they can be deleted by: %s", slices.Sorted(maps.Keys(before)), labelled)
	}
	if after := r.generations(t); after != generations {
		t.Errorf("the workloads were at generations %s and are at %s", generations, after)
	}

	r.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(Root, "deploy", "install.yaml"))
	r.kubectl.Run(t, "wait", "--for=condition=Established", "crd/"+definitionOfServers, "--timeout=1m")
	r.operate(t)
	r.populate(t)
	after := r.mustHaveLeft(t)
	for name, uid := range before {
		if strings.HasPrefix(name, "Pod/") && after[name] != uid {
			t.Errorf("%s was replaced when Freehold was installed again", name)
		}
	}
	r.checkOwned(t, after)
}

// checkOwned checks that the children that do not follow from others are the MCPServer's.
func (r *resident) checkOwned(t *testing.T, objects map[string]string) {
	t.Helper()
	for name := range objects {
		kind, of, _ := strings.Cut(name, "/")
		if kind == "Pod" || kind == "ReplicaSet" {
			continue
		}
		if owner := r.kubectl.Run(t, "get", kind, of, "-o", "jsonpath={.metadata.ownerReferences[0].kind}"); owner != "MCPServer" {
			t.Errorf("%s is owned by %q", name, owner)
		}
	}
}

// generations are those of the workloads: they count the changes of their specs.
func (r *resident) generations(t *testing.T) string {
	t.Helper()
	return r.kubectl.Run(t, "get", "deployment,statefulset", "-o", "jsonpath={.items[*].metadata.generation}")
}

// TestUninstallEverything uninstalls Freehold with its definitions, and with everything that MCPServers have.
func TestUninstallEverything(t *testing.T) {
	harness.Long(t)
	removesAll(t, Of(t), false)
}

// TestUninstallButDefinitions uninstalls Freehold with everything that MCPServers have, and leaves the definitions.
func TestUninstallButDefinitions(t *testing.T) {
	harness.Long(t)
	removesAll(t, Of(t), true)
}

// removesAll types commands, which leave nothing but the definitions, or not even these.
func removesAll(t *testing.T, commands []Command, definitions bool) {
	t.Helper()
	r := newResident(t)
	for _, command := range commands {
		r.types(t, command)
	}
	r.crash(t)
	r.checkUninstalled(t, definitions)
	r.awaitNothing(t)
}

// TestUninstallInterrupted presses Ctrl-C while MCPServers are waited for: the operator is not deleted, so nothing is stuck, and the
// same command ends well later. No MCPServer can be made meanwhile.
func TestUninstallInterrupted(t *testing.T) {
	harness.Long(t)
	const holds = "example.com/holds"
	r := newResident(t)
	r.kubectl.Run(t, "patch", "mcpserver", web, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"`+holds+`"}]`)
	command := removal(t)
	p := start(t, r.filledIn(command), r.environment())
	harness.Eventually(t, "the operator has released the MCPServer", func(ctx context.Context) error {
		found, err := r.kubectl.Try(ctx, harness.Call{Args: []string{"get", "mcpserver", web, "-o", "jsonpath={.metadata.finalizers}"}})
		if err == nil && found != `["`+holds+`"]` {
			err = fmt.Errorf("its finalizers are %s", found)
		}
		return err
	})
	if _, err := r.kubectl.Try(t.Context(), harness.Call{
		Args:  []string{"apply", "--server-side", "-f", "-"},
		Input: `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "late"}, "spec": {"image": "example.com/late"}}`,
	}); err == nil || !strings.Contains(err.Error(), "terminating") {
		t.Errorf("an MCPServer that comes late: %v", err)
	}
	if err := p.Interrupt(t, syscall.SIGINT); err == nil {
		t.Error("the command ends well although it was interrupted")
	}
	if !r.has(t, "deployment/freehold", "-n", operator.Namespace) {
		t.Fatal("the operator was deleted before the MCPServers were gone")
	}
	r.kubectl.Run(t, "patch", "mcpserver", web, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers/0"}]`)
	r.types(t, command)
	r.crash(t)
	r.checkUninstalled(t, false)
	r.awaitNothing(t)
}

// removal is the command that removes everything.
func removal(t *testing.T) Command {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	found := slices.IndexFunc(all, func(c Command) bool { return c.File == "docs/uninstall.md" && c.Section == "Remove everything" })
	if found < 0 {
		t.Fatal("there is no such command")
	}
	return all[found]
}

// strand uninstalls Freehold as one should not: definitions, operator and all at once.
func (r *resident) strand(t *testing.T) {
	t.Helper()
	r.crash(t)
	r.kubectl.Run(t, "delete", "-f", filepath.Join(Root, "deploy", "install.yaml"), "--wait=false")
	harness.Eventually(t, "the MCPServer is being deleted", func(ctx context.Context) error {
		deleted, err := r.kubectl.Try(ctx, harness.Call{Args: []string{"get", "mcpserver", web, "-o", "jsonpath={.metadata.deletionTimestamp}"}})
		if err == nil && deleted == "" {
			err = errors.New("it is not")
		}
		return err
	})
	if finalizers := r.kubectl.Run(t, "get", "mcpserver", web, "-o", "jsonpath={.metadata.finalizers[0]}"); finalizers != v1beta1.Finalizer {
		t.Fatalf("it is not stuck: its finalizers are %s", finalizers)
	}
}

// TestStuck gets MCPServers off their finalizers by an operator.
func TestStuck(t *testing.T) {
	harness.Long(t)
	r := newResident(t)
	r.strand(t)
	for _, command := range Of(t) {
		switch out := r.types(t, command); {
		case strings.Contains(command.Text, "custom-columns") && !strings.Contains(out, v1beta1.Finalizer):
			t.Errorf("%v shows\n%s", command, out)
		case strings.Contains(command.Text, "kubectl apply"):
			r.operate(t)
		}
	}
	r.awaitNothing(t)
	if left := r.kubectl.Run(t, "get", "crd", "-o", "name"); left != "" {
		t.Errorf("the commands end before all definitions are gone:\n%s", left)
	}
}

// TestStuckForGood gets MCPServers off their finalizers by hand. Those that are not being deleted keep theirs.
func TestStuckForGood(t *testing.T) {
	harness.Long(t)
	r := newResident(t)
	r.crash(t)
	staying := r.Create(t, harness.Server("staying", v1beta1.TransportSSE, func(server *v1beta1.MCPServer) {
		server.Finalizers = []string{v1beta1.Finalizer}
	}))
	r.kubectl.Run(t, "delete", "mcpserver/"+web, "mcpgroup/team", "--wait=false")
	for _, command := range Of(t) {
		r.types(t, command)
	}
	if found := r.kubectl.Run(t, "get", "mcpservers,mcpgroups", "-A", "-o", "name"); strings.TrimSpace(found) != "mcpserver.toolhive.stacklok.dev/"+staying.Name {
		t.Errorf("there are %s", found)
	}
	if finalizers := r.kubectl.Run(t, "get", "mcpserver", staying.Name, "-o", "jsonpath={.metadata.finalizers[0]}"); finalizers != v1beta1.Finalizer {
		t.Errorf("an MCPServer that stays has the finalizers %s", finalizers)
	}
	r.awaitNothing(t)
}

// TestUninstallToToolHive hands MCPServers over and deletes Freehold's operator. The operator of ToolHive is a Deployment whose pods are
// fake; what it does with what it is given is for test/takeover, on a real node.
func TestUninstallToToolHive(t *testing.T) {
	harness.Long(t)
	r := newResident(t)
	r.crash(t) // It would not end with its Deployment.
	before := r.mustHaveLeft(t)
	r.kubectl.Run(t, "create", "namespace", "toolhive-system")
	r.kubectl.Run(t, "create", "deployment", "toolhive-operator", "--replicas=0", "--image=ghcr.io/stacklok/toolhive/operator:v0.47.0", "-n", "toolhive-system")
	for _, command := range Of(t) {
		r.types(t, command)
	}
	for name := range before {
		if kind, of, _ := strings.Cut(name, "/"); kind != "Pod" && kind != "ReplicaSet" && !r.has(t, kind, of) {
			t.Errorf("%s is gone", name)
		}
	}
	if r.has(t, "namespace/"+operator.Namespace) || r.has(t, "clusterrole/freehold") {
		t.Error("Freehold's operator is still there")
	}
	if !r.has(t, "mcpserver", web) {
		t.Fatal("the MCPServer is gone")
	}
	managed := r.kubectl.Run(t, "get", "mcpserver", web, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}")
	if strings.Contains(managed, "freehold-") || !strings.Contains(managed, "thv-operator") {
		t.Errorf("the MCPServer is managed by %s", managed)
	}
}
