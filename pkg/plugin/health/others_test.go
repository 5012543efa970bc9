// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// breakagesByOthers are about operators beside the one that is looked at.
var breakagesByOthers = map[string]breakage{
	"ToolHive's operator": {
		func(w *world) { w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", "")) }, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"namespace shop", "kubectl scale -n elsewhere deployment/thv --replicas=0",
	},
	"ToolHive's operator with the binding of the policy alone": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "toolhive-system"))
			w.remove("ValidatingAdmissionPolicy", "freehold-toolhive-operator")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"namespace shop", "deploy/policy/beside-toolhive",
	},
	"ToolHive's operator, with a policy that only warns": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator", []any{"Warn"}, "spec", "validationActions")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"does not deny", "deploy/policy/beside-toolhive",
	},
	"ToolHive's operator, with a policy of other namespaces": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.about("system:serviceaccount:elsewhere:default")
			w.set("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator", content{"matchLabels": content{"team": "other"}}, "spec", "matchResources", "namespaceSelector")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"holds in other namespaces alone", "kubectl edit validatingadmissionpolicybinding/freehold-toolhive-operator",
	},
	"ToolHive's operator, without an MCPServer, with a policy that only warns": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.remove("MCPServer", "web")
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator", []any{"Audit"}, "spec", "validationActions")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"does not deny", "",
	},
	"ToolHive's operator, with a policy about another ServiceAccount": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.about("system:serviceaccount:toolhive-system:toolhive-operator")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"system:serviceaccount:elsewhere:default", "docs/migration-details.md",
	},
	"ToolHive's operator without an MCPServer": {
		func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.remove("MCPServer", "web")
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "toolhive-system"))
			w.remove("ValidatingAdmissionPolicy", "freehold-toolhive-operator")
		}, "operators",
		[]string{"Error ToolHiveRuns deployment.apps/thv"},
		"every namespace", "",
	},
	"a second operator of Freehold's": {
		func(w *world) { w.add(fmt.Sprintf(anotherOperator, "second", "freehold", "")) }, "operators",
		[]string{"Error TwoOperators deployment.apps/second"},
		"a second operator", "--watch-namespaces",
	},
	"a second operator of Freehold's, for one of the namespaces": {
		func(w *world) { w.add(fmt.Sprintf(anotherOperator, "second", "freehold", "--watch-namespaces=shop")) }, "operators",
		[]string{"Error TwoOperators deployment.apps/second"},
		"a second operator", "",
	},
	"a second operator of Freehold's, for some of the MCPServers": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-b", "--mcpserver-selector=shard in (a,b)", "--leader-elect-resource-name=freehold-b")
		}, "operators",
		[]string{"Error TwoOperators deployment.apps/freehold-b"},
		"shard in (a,b)", "--mcpserver-selector",
	},
	"a second operator of Freehold's, for the same MCPServers": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard!=a")
			w.shard("freehold-b", "--mcpserver-selector=shard!=a", "--leader-elect-resource-name=freehold-b")
		}, "operators",
		[]string{"Error TwoOperators deployment.apps/freehold-b"},
		"a second operator", "--mcpserver-selector",
	},
	"MCPServers without an operator": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard=b")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
		}, "operators",
		[]string{"Error Unattended "},
		"no operator looks after these MCPServers: shop/web", "docs/shards.md",
	},
	"two operators with MCPServers of their own, and one Lease": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold")
		}, "operators",
		[]string{"Error SharedLease deployment.apps/freehold-a"},
		"freehold-system/freehold", "--leader-elect-resource-name",
	},
	"a leader of another operator": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			w.set("Lease", "freehold", "freehold-a-6f9d-ccccc_1", "spec", "holderIdentity")
			w.add("apiVersion: v1\nkind: Pod\nmetadata: {name: freehold-a-6f9d-ccccc, namespace: freehold-system, " +
				"labels: {app.kubernetes.io/name: freehold, app.kubernetes.io/component: operator, pod-template-hash: 6f9d}, " +
				"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: freehold-a-6f9d, uid: u, controller: true}]}")
		}, "leader",
		[]string{"Error OtherLeader lease.coordination.k8s.io/freehold"},
		"freehold-a-6f9d-ccccc", "",
	},
	"a pod of Freehold's without a controller": {
		func(w *world) { w.add(fmt.Sprintf(barePod, "[--leader-elect=false]")) }, "operators",
		[]string{"Error TwoOperators pod/mine"},
		"a second operator", "Stop it",
	},
	"a pod of Freehold's without a controller, and one Lease": {
		func(w *world) { w.add(fmt.Sprintf(barePod, "[--mcpserver-selector=shard=a]")) }, "operators",
		[]string{"Error SharedLease pod/mine"},
		"freehold-system/freehold", "--leader-elect-resource-name",
	},
	"a second process of Freehold's": {
		func(w *world) {
			w.add("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: freehold, namespace: elsewhere}\n" +
				"spec: {holderIdentity: laptop_1, leaseDurationSeconds: 15, renewTime: \"2026-06-01T11:59:57.000000Z\"}")
		}, "operators",
		[]string{"Error TwoOperators lease.coordination.k8s.io/freehold"},
		"laptop_1 holds it", "Stop it",
	},
	"an operator beside others without a replica": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			w.set("Deployment", "freehold-a", content{"matchLabels": content{"app.kubernetes.io/instance": "a"}}, "spec", "selector")
			w.set("Deployment", "freehold-a", int64(0), "status", "availableReplicas")
			w.add("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: freehold-a, namespace: freehold-system}\n" +
				"spec: {holderIdentity: freehold-a-6f9d-ccccc_1, leaseDurationSeconds: 15, renewTime: \"2026-06-01T11:59:57.000000Z\"}")
			w.add("apiVersion: v1\nkind: Pod\nmetadata: {name: freehold-a-6f9d-ccccc, namespace: freehold-system, labels: {app.kubernetes.io/instance: a}}")
			w.operator = "freehold-system/freehold-a"
		}, "operator",
		[]string{"Error NotAvailable deployment.apps/freehold-a"},
		"", "kubectl describe -n freehold-system deployment/freehold-a && kubectl describe pods -n freehold-system -l 'app.kubernetes.io/instance=a'",
	},
	"an operator beside others that has never worked": {
		func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			w.set("Deployment", "freehold-a", content{"matchLabels": content{"app.kubernetes.io/instance": "a"}}, "spec", "selector")
			w.operator = "freehold-system/freehold-a"
		}, "leader",
		[]string{"Error NoLeader lease.coordination.k8s.io/freehold-a"},
		"", "kubectl logs -n freehold-system -l 'app.kubernetes.io/instance=a' --tail=50",
	},
}

// barePod is a pod of Freehold's beside those of the Deployment.
const barePod = `
apiVersion: v1
kind: Pod
metadata: {name: mine, namespace: freehold-system, labels: {app.kubernetes.io/name: freehold}}
spec: {containers: [{name: freehold, image: "example.com/freehold:v1", args: %s}]}
`

// leaving scales the operator of a shard to 0, whose last pod is on its way out.
func (w *world) leaving(name string) {
	w.t.Helper()
	w.set("Deployment", name, int64(0), "spec", "replicas")
	w.set("Deployment", name, content{"observedGeneration": int64(1)}, "status")
	w.at("Deployment", name, func(c content) {
		pod := (&unstructured.Unstructured{Object: c["spec"].(content)["template"].(content)}).DeepCopy()
		pod.Object["apiVersion"], pod.Object["kind"] = "v1", "Pod"
		w.objects = append(w.objects, pod)
		pod.SetName(name + "-6f9d-ccccc")
		pod.SetNamespace("freehold-system")
		pod.SetLabels(map[string]string{"app.kubernetes.io/name": "freehold", "app.kubernetes.io/component": "operator", "pod-template-hash": "6f9d"})
		at, controller := metav1.NewTime(now), true
		pod.SetDeletionTimestamp(&at)
		pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-6f9d", UID: "u", Controller: &controller}})
	})
}

// shard adds another operator of Freehold's beside the first, with more arguments.
func (w *world) shard(name string, arguments ...string) {
	w.t.Helper()
	w.at("Deployment", "freehold", func(c content) {
		other := (&unstructured.Unstructured{Object: c}).DeepCopy()
		other.SetName(name)
		container := other.Object["spec"].(content)["template"].(content)["spec"].(content)["containers"].([]any)[0].(content)
		args := slices.DeleteFunc(container["args"].([]any), func(arg any) bool { return strings.HasPrefix(arg.(string), "--mcpserver-selector") })
		for _, argument := range arguments {
			args = append(args, argument)
		}
		container["args"] = args
		w.objects = append(w.objects, other)
	})
}

// about lets the policy that keeps ToolHive's operator from MCPServers name a user.
func (w *world) about(user string) {
	w.t.Helper()
	w.set("ValidatingAdmissionPolicy", "freehold-toolhive-operator",
		[]any{content{"name": "toolhive-operator", "expression": "request.userInfo.username == '" + user + "'"}}, "spec", "matchConditions")
}

// What cannot be looked at is no finding: whether a policy keeps ToolHive's operator from MCPServers is not known then.
func TestAnUnknownFenceIsNoFinding(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(w *world)
		says string
	}{
		"no right to read policies": {func(w *world) { w.mayNot = []string{"get validatingadmissionpolicies"} }, `needs the right to get resource "validatingadmissionpolicies"`},
		"no right to read bindings": {func(w *world) { w.mayNot = []string{"get validatingadmissionpolicybindings"} }, `needs the right to get resource "validatingadmissionpolicybindings"`},
		"no right to read a namespace": {func(w *world) {
			w.mayNot = []string{"get namespaces"}
			w.set("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator", content{"matchLabels": content{"team": "shop"}}, "spec", "matchResources", "namespaceSelector")
		}, `needs the right to get resource "namespaces"`},
		"no right, and no MCPServer": {func(w *world) {
			w.mayNot = []string{"get validatingadmissionpolicies"}
			w.remove("MCPServer", "web")
		}, `needs the right to get resource "validatingadmissionpolicies"`},
		"a condition of another form": {func(w *world) {
			w.set("ValidatingAdmissionPolicy", "freehold-toolhive-operator",
				[]any{content{"name": "mine", "expression": "request.userInfo.username.startsWith('system:')"}}, "spec", "matchConditions")
		}, "match condition mine"},
		"an operator that shows only by its Lease": {func(w *world) {
			w.remove("Deployment", "thv")
			w.about("system:serviceaccount:toolhive-system:toolhive-operator")
			w.add("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: toolhive-operator-leader-election, namespace: elsewhere}\n" +
				"spec: {holderIdentity: laptop_1, leaseDurationSeconds: 15, renewTime: \"2026-06-01T11:59:57.000000Z\"}")
		}, "as which user"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			test.do(w)
			c := w.examine().check("operators")
			if c.State != NotChecked || len(c.Findings) > 0 || !strings.Contains(strings.Join(c.NotChecked, "\n"), test.says) {
				t.Errorf("it is %s: %+v, %q, want %q", c.State, c.Findings, c.NotChecked, test.says)
			}
		})
	}
}

// Where the operator is not there that the plugin looks for, no other one is in its way, and the way out names those.
func TestAnOperatorOfAnotherNameIsInNobodysWay(t *testing.T) {
	w := newWorld(t)
	w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
	w.shard("freehold-b", "--mcpserver-selector=shard notin (a)", "--leader-elect-resource-name=freehold-b")
	w.remove("Deployment", "freehold")
	found := w.examine()
	if c := found.check("operators"); len(c.Findings) > 0 {
		t.Errorf("it says %+v", c.Findings)
	}
	const want = "--operator=freehold-system/freehold-a or --operator=freehold-system/freehold-b"
	if c := found.check("operator"); len(c.Findings) != 1 || !strings.Contains(c.Findings[0].Do, want) {
		t.Errorf("it does not say %q: %+v", want, c.Findings)
	}
}

// How an operator was started that shows only by its Lease is not known. One that looks after all MCPServers has it in its way all the
// same.
func TestAnOperatorOfAllIsInTheWayOfOneOfUnknownScope(t *testing.T) {
	w := newWorld(t)
	w.argument("--mcpserver-selector=shard=a")
	w.add("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: freehold, namespace: elsewhere}\n" +
		"spec: {holderIdentity: laptop_1, leaseDurationSeconds: 15, renewTime: \"2026-06-01T11:59:57.000000Z\"}")
	if c := w.examine().check("operators"); c.State != NotChecked || !strings.Contains(strings.Join(c.NotChecked, ""), "laptop_1 holds it") {
		t.Errorf("it is %s: %+v, %q", c.State, c.Findings, c.NotChecked)
	}
}

// A Lease that no operator has which was found belongs to a process of which nothing else is known, whichever operators run in its
// namespace.
func TestALeaseWithoutAnOperatorIsOfAnUnknownProcess(t *testing.T) {
	w := newWorld(t)
	w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
	w.operator = "freehold-system/freehold-a"
	w.remove("Deployment", "freehold")
	w.set("Lease", "freehold", "laptop_1", "spec", "holderIdentity")
	for _, pod := range []string{leading, "freehold-5d8f7c-bbbbb"} {
		w.remove("Pod", pod)
	}
	if c := w.examine().check("operators"); c.State != NotChecked || !strings.Contains(strings.Join(c.NotChecked, ""), "laptop_1 holds it") {
		t.Errorf("it is %s: %+v, %q", c.State, c.Findings, c.NotChecked)
	}
}

// Without the right to list MCPServers it is not known which proxies are those of an operator with a selector.
func TestProxiesOfUnknownMCPServersAreNotChecked(t *testing.T) {
	w := newWorld(t)
	w.argument("--mcpserver-selector=shard=a")
	w.set("Deployment", "web", "example.com/runner:mine", "spec", "template", "spec", "containers", 0, "image")
	w.mayNot = []string{"list mcpservers"}
	if c := w.examine().check("images"); c.State != NotChecked || len(c.Findings) > 0 || !slices.ContainsFunc(c.NotChecked, func(text string) bool { return strings.Contains(text, `"shard=a"`) }) {
		t.Errorf("it is %s: %+v, %q", c.State, c.Findings, c.NotChecked)
	}
}
