// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"testing"
)

// ways returns what to do about the findings of a check, with a reason.
func (c Check) ways(reason string) string {
	var all []string
	for _, f := range c.Findings {
		if f.Reason == reason {
			all = append(all, f.Do)
		}
	}
	return strings.Join(all, "\n")
}

// What deploy/ has is a way out only of an installation that is as deploy/ makes it: it would take the settings from another one.
func TestInstallsAnewOnlyWhatIsAsInTheManifests(t *testing.T) {
	const file = "kubectl apply --server-side -f deploy/install-without-crd.yaml"
	inPod := []any{"spec", "template", "spec"}
	withShard := func(w *world) {
		w.argument("--mcpserver-selector=shard notin (a)")
		w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
	}
	leases := func(w *world) { w.denied = []string{"update leases"} }
	for name, test := range map[string]struct {
		do            func(w *world)
		check, reason string
		// says is in what to do, and not is not.
		says, not string
	}{
		"an operator as in the manifests": {leases, "rights", "RightMissing", file, "the manifests"},
		"a shard": {func(w *world) {
			withShard(w)
			leases(w)
			w.operator = "freehold-system/freehold-a"
		}, "rights", "RightMissing", "Lease freehold-a", "install-without-crd.yaml"},
		"the operator of the rest": {func(w *world) {
			withShard(w)
			leases(w)
		}, "rights", "RightMissing", "docs/shards.md", "install-without-crd.yaml"},
		"an operator as in the manifests beside a shard": {func(w *world) {
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			leases(w)
		}, "rights", "RightMissing", "update leases.coordination.k8s.io in namespace freehold-system", "install-without-crd.yaml"},
		"another image": {func(w *world) {
			w.set("Deployment", "freehold", "registry.example.com/freehold:v0.1.0", append(inPod, "containers", 0, "image")...)
			leases(w)
		}, "rights", "RightMissing", "the manifests", "install-without-crd.yaml"},
		"another ServiceAccount": {func(w *world) {
			w.set("Deployment", "freehold", "mine", append(inPod, "serviceAccountName")...)
		}, "rights", "RightMissing", "serviceaccount/mine", "install-without-crd.yaml"},
		"some namespaces": {func(w *world) {
			w.argument("--watch-namespaces=shop")
			w.denied = []string{"create roles"}
		}, "rights", "RightMissing", "copy of deploy/namespaced", "kubectl apply"},
		"the namespace of deploy/namespaced": {func(w *world) {
			w.at("Deployment", "freehold", func(c content) {
				container := c["spec"].(content)["template"].(content)["spec"].(content)["containers"].([]any)[0].(content)
				container["env"] = append(container["env"].([]any), content{"name": "WATCH_NAMESPACE", "value": "mcp-servers"})
			})
			w.denied = []string{"create roles"}
		}, "rights", "RightMissing", "kubectl apply --server-side -k deploy/namespaced", "install-without-crd.yaml"},
		"no operator": {func(w *world) { w.remove("Deployment", "freehold") }, "operator", "NoOperator", file, ""},
		"no operator of that name": {func(w *world) {
			w.operator = "freehold-system/mine"
			w.remove("Deployment", "freehold")
		}, "operator", "NoOperator", "--operator=NAMESPACE/NAME", "install-without-crd.yaml"},
		"no operator of the rest": {func(w *world) {
			withShard(w)
			w.remove("Deployment", "freehold")
		}, "operator", "NoOperator", "--operator=freehold-system/freehold-a", "install-without-crd.yaml"},
		"a policy": {func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-runners")
		}, "policies", "NoBinding", "kubectl apply -k deploy/policy", "the kustomization"},
		"a policy about another ServiceAccount": {func(w *world) {
			w.set("Deployment", "freehold", "mine", append(inPod, "serviceAccountName")...)
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-runners")
		}, "policies", "NoBinding", "system:serviceaccount:freehold-system:mine", "kubectl apply"},
		"a policy of an operator that is not there": {func(w *world) {
			w.remove("Deployment", "freehold")
			w.add(fmt.Sprintf(policy, "freehold-runners", "platform"))
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-runners")
		}, "policies", "NoBinding", "docs/policies.md", "kubectl apply"},
		"policies of some namespaces": {func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-owned-fields", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-owned-fields", content{"matchLabels": content{"team": "shop"}}, "spec", "matchResources", "namespaceSelector")
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-runners")
		}, "policies", "NoBinding", "docs/policies.md", "kubectl apply"},
		"the policy beside ToolHive's operator": {func(w *world) {
			w.set("Deployment", "freehold", "mine", append(inPod, "serviceAccountName")...) // This one does not name it.
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.about("system:serviceaccount:toolhive-system:toolhive-operator")
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator")
		}, "policies", "NoBinding", "kubectl apply -k deploy/policy/beside-toolhive", "the kustomization"},
		"the policy beside another operator of ToolHive's": {func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.about("system:serviceaccount:elsewhere:default")
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-toolhive-operator")
		}, "policies", "NoBinding", "docs/migration-details.md", "kubectl apply"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			got := w.examine().check(test.check).ways(test.reason)
			if !strings.Contains(got, test.says) || test.not != "" && strings.Contains(got, test.not) {
				t.Errorf("it says %q, want %q and not %q", got, test.says, test.not)
			}
		})
	}
}
