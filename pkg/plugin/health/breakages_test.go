// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
)

const definitionOfServers, definitionOfIssuers = "mcpservers.toolhive.stacklok.dev", "mcpoidcconfigs.toolhive.stacklok.dev"

const (
	anotherOperator = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: elsewhere, labels: {app.kubernetes.io/name: %s}}
spec: {replicas: 1, template: {spec: {containers: [{name: manager, image: "example.com/manager:v1", args: [%s]}]}}}
`
	policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec: {variables: [{name: operator, expression: "'system:serviceaccount:%[2]s:freehold'"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny], matchResources: {namespaceSelector: {}}}
`
)

// breakage is a way in which an installation can be wrong.
type breakage struct {
	do    func(w *world)
	check string
	// want are the findings, as SEVERITY REASON OBJECT.
	want []string
	// says is in a message, and the way out in what to do.
	says, wayOut string
}

// breakages are all of them. Each is told by one check, and by no other.
var breakages = func() map[string]breakage {
	all := maps.Clone(breakagesOfOne)
	maps.Copy(all, breakagesByOthers)
	maps.Copy(all, breakagesOfServices)
	return all
}()

// breakagesOfOne are about one operator.
var breakagesOfOne = map[string]breakage{
	"no definition of MCPServers": {
		func(w *world) { w.remove("CustomResourceDefinition", definitionOfServers) }, "crds",
		[]string{"Error NotInstalled customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"there can be no MCPServer", "kubectl freehold crd |",
	},
	"no definition of a kind that nothing refers to": {
		func(w *world) { w.remove("CustomResourceDefinition", definitionOfIssuers) }, "crds",
		[]string{"Warning NotInstalled customresourcedefinition.apiextensions.k8s.io/" + definitionOfIssuers},
		"there can be no MCPOIDCConfig", "",
	},
	"no definition of a kind that an MCPServer refers to": {
		func(w *world) {
			w.remove("CustomResourceDefinition", definitionOfIssuers)
			w.set("MCPServer", "web", content{"name": "corp"}, "spec", "oidcConfigRef")
		}, "crds",
		[]string{"Error NotInstalled customresourcedefinition.apiextensions.k8s.io/" + definitionOfIssuers},
		"shop/web", "",
	},
	"a definition that is being deleted": {
		func(w *world) {
			w.set("CustomResourceDefinition", definitionOfServers, "2026-06-01T11:00:00Z", "metadata", "deletionTimestamp")
		}, "crds",
		[]string{"Error BeingDeleted customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"every MCPServer", "docs/uninstall.md",
	},
	"a definition that is not established": {
		func(w *world) {
			w.set("CustomResourceDefinition", definitionOfServers, []any{
				content{"type": "Established", "status": "False"}, content{"type": "NamesAccepted", "status": "False", "message": "mcpservers is in use"},
			}, "status", "conditions")
		}, "crds",
		[]string{"Error NotEstablished customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"mcpservers is in use", "",
	},
	"a version that is not served": {
		func(w *world) {
			w.at("CustomResourceDefinition", definitionOfServers, func(c content) {
				for _, version := range c["spec"].(content)["versions"].([]any) {
					version.(content)["served"] = version.(content)["name"] != "v1beta1"
				}
			})
		}, "crds",
		[]string{"Error VersionNotServed customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"v1beta1", "docs/migration-details.md",
	},
	"objects that are stored in another version": {
		func(w *world) {
			w.set("CustomResourceDefinition", definitionOfServers, []any{"v1beta1", "v2"}, "status", "storedVersions")
		}, "crds",
		[]string{"Warning StoredVersion customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"v2", "",
	},
	"an MCPServer with an owner in a version that is gone": {
		func(w *world) {
			w.at("MCPServer", "web", func(c content) {
				holdBy(c, "kubectl", `{"f:spec":{"f:image":{}}}`)
				c["metadata"].(content)["managedFields"].([]any)[0].(content)["apiVersion"] = "toolhive.stacklok.dev/v1alpha0"
			})
		}, "crds",
		[]string{"Error RecordedVersion customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"toolhive.stacklok.dev/v1alpha0, which is in the managedFields of objects: until Freehold next writes them, the API server refuses each " +
			"server-side apply of them: shop/web", "docs/upgrade.md",
	},
	"an older definition": {
		func(w *world) { w.properties("spec", func(c content) { delete(c, "proxyReadTimeout") }) }, "crds",
		[]string{"Warning FieldsMissing customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"spec.proxyReadTimeout", "",
	},
	"a definition without a field of the status": {
		func(w *world) { w.properties("status", func(c content) { delete(c, "oidcConfigHash") }) }, "crds",
		[]string{"Error FieldsNeeded customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"status.oidcConfigHash", "",
	},
	"a newer definition": {
		func(w *world) { w.properties("spec", func(c content) { c["newer"] = content{"type": "string"} }) }, "crds",
		[]string{"Warning FieldsUnknown customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"spec.newer", "",
	},
	"two installers": {
		func(w *world) {
			w.at("CustomResourceDefinition", definitionOfServers, func(c content) { holdBy(c, "helm", `{"f:spec":{"f:versions":{}}}`) })
		}, "crds",
		[]string{"Warning TwoInstallers customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"kubectl and helm", "",
	},
	"definitions that Helm may remove": {
		func(w *world) {
			w.set("CustomResourceDefinition", definitionOfServers, content{"app.kubernetes.io/managed-by": "Helm"}, "metadata", "labels")
			w.set("CustomResourceDefinition", definitionOfServers,
				content{"meta.helm.sh/release-name": "crds", "meta.helm.sh/release-namespace": "toolhive-system"}, "metadata", "annotations")
		}, "crds",
		[]string{"Warning HelmMayRemove customresourcedefinition.apiextensions.k8s.io/" + definitionOfServers},
		"toolhive-system/crds", "If Helm removes",
	},
	"an operator that is scaled to 0": {
		func(w *world) {
			w.set("Deployment", "freehold", int64(0), "spec", "replicas")
			w.set("Deployment", "freehold", content{"observedGeneration": int64(1)}, "status")
		}, "operator",
		[]string{"Error ScaledToZero deployment.apps/freehold"},
		"scaled to 0", "--replicas=2",
	},
	"an operator without a replica": {
		func(w *world) {
			w.set("Deployment", "freehold", int64(0), "status", "availableReplicas")
			w.set("Deployment", "freehold", []any{content{"type": "Available", "status": "False", "message": "no minimum"}}, "status", "conditions")
		}, "operator",
		[]string{"Error NotAvailable deployment.apps/freehold"},
		"no minimum", "kubectl describe",
	},
	"an operator with one replica of two": {
		func(w *world) { w.set("Deployment", "freehold", int64(1), "status", "availableReplicas") }, "operator",
		[]string{"Warning PartlyAvailable deployment.apps/freehold"},
		"1 of 2", "",
	},
	"an operator that rolls out": {
		func(w *world) { w.set("Deployment", "freehold", int64(1), "status", "updatedReplicas") }, "operator",
		[]string{"Warning RollingOut deployment.apps/freehold"},
		"1 of 2", "",
	},
	"no Lease": {
		func(w *world) { w.remove("Lease", "freehold") }, "leader",
		[]string{"Error NoLeader lease.coordination.k8s.io/freehold"},
		"the Lease does not exist", "kubectl logs",
	},
	"a Lease that nobody holds": {
		func(w *world) { w.set("Lease", "freehold", "", "spec", "holderIdentity") }, "leader",
		[]string{"Error NoLeader lease.coordination.k8s.io/freehold"},
		"no replica holds it", "",
	},
	"a Lease that is not renewed": {
		func(w *world) { w.set("Lease", "freehold", "2026-06-01T11:59:00.000000Z", "spec", "renewTime") }, "leader",
		[]string{"Error StaleLease lease.coordination.k8s.io/freehold"},
		"1m0s", "",
	},
	"a leader that is no pod": {
		func(w *world) { w.set("Lease", "freehold", "laptop_1", "spec", "holderIdentity") }, "leader",
		[]string{"Error OtherLeader lease.coordination.k8s.io/freehold"},
		"laptop_1", "",
	},
	"replicas that elect no leader": {
		func(w *world) { w.argument("--leader-elect=false") }, "leader",
		[]string{"Error SeveralLeaders deployment.apps/freehold"},
		"", "--leader-elect=false",
	},
	"a Lease of another name is not there": {
		func(w *world) { w.argument("--leader-elect-resource-name=other") }, "leader",
		[]string{"Error NoLeader lease.coordination.k8s.io/other"},
		"", "",
	},
	"a pod that crashes": {
		func(w *world) {
			w.set("Pod", leading, content{"waiting": content{"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}, "status", "containerStatuses", 0, "state")
			w.set("Pod", leading, int64(3), "status", "containerStatuses", 0, "restartCount")
		}, "restarts",
		[]string{"Error CrashLoopBackOff pod/" + leading},
		"back-off 5m0s", "--previous",
	},
	"a pod whose image cannot be pulled": {
		func(w *world) {
			w.set("Pod", leading, content{"waiting": content{"reason": "ImagePullBackOff", "message": "back-off pulling image"}},
				"status", "containerStatuses", 0, "state")
		}, "restarts",
		[]string{"Error ImagePullBackOff pod/" + leading},
		"back-off pulling image", "kubectl describe pod -n freehold-system " + leading,
	},
	"a pod that restarted": {
		func(w *world) {
			w.set("Pod", leading, content{"terminated": content{"reason": "OOMKilled", "exitCode": int64(137), "finishedAt": "2026-06-01T11:00:00Z"}},
				"status", "containerStatuses", 0, "lastState")
		}, "restarts",
		[]string{"Warning Restarted pod/" + leading},
		"OOMKilled", "--previous",
	},
	"an operator of another version": {
		func(w *world) { w.plugin = "v0.2.0" }, "version",
		[]string{"Warning OtherVersion deployment.apps/freehold"},
		"it is v0.1.0 and the plugin v0.2.0", "Install the operator v0.2.0.",
	},
	"an older plugin": {
		func(w *world) { w.plugin = "v0.0.9" }, "version",
		[]string{"Warning OtherVersion deployment.apps/freehold"},
		"it is v0.1.0 and the plugin v0.0.9", "Install the plugin v0.1.0.",
	},
	"an operator without a version": {
		func(w *world) {
			w.set("Deployment", "freehold", "registry:5000/freehold:latest", "spec", "template", "spec", "containers", 0, "image")
		}, "version",
		[]string{"Warning NoVersion deployment.apps/freehold"},
		"registry:5000/freehold:latest", "",
	},
	"rights that are missing": {
		func(w *world) { w.denied = []string{"patch statefulsets", "delete statefulsets"} }, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"it may not patch, delete statefulsets.apps", "install-without-crd.yaml",
	},
	"rights that it does without": {
		func(w *world) { w.denied = []string{"watch virtualmcpservers"} }, "rights",
		[]string{"Warning RightMissing serviceaccount/freehold"},
		"It works without this right", "",
	},
	"a right in one namespace": {
		func(w *world) {
			w.argument("--watch-namespaces=shop")
			w.denied = []string{"create roles"}
		}, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"roles.rbac.authorization.k8s.io in namespace shop", "deploy/namespaced",
	},
	"no right to the Lease": {
		func(w *world) { w.denied = []string{"update leases"} }, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"leases.coordination.k8s.io in namespace freehold-system", "",
	},
	"rights that RBAC does not give": {
		func(w *world) {
			w.mayNot = []string{"create subjectaccessreviews"}
			w.at("ClusterRole", "freehold", func(c content) {
				for _, rule := range c["rules"].([]any) {
					resources := rule.(content)["resources"].([]any)
					rule.(content)["resources"] = slices.DeleteFunc(resources, func(resource any) bool { return resource == "pods/eviction" })
				}
			})
		}, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"it may not create pods/eviction", "install-without-crd.yaml",
	},
	"RBAC gives a right to another Lease": {
		func(w *world) {
			w.mayNot = []string{"create subjectaccessreviews"}
			w.argument("--leader-elect-resource-name=other")
			w.set("Lease", "freehold", "other", "metadata", "name")
		}, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"it may not get, update leases.coordination.k8s.io", "",
	},
	"RBAC gives rights to a ServiceAccount of another namespace": {
		func(w *world) {
			w.mayNot = []string{"create subjectaccessreviews"}
			w.at("RoleBinding", "freehold-leader-election", func(c content) { c["subjects"].([]any)[0].(content)["namespace"] = "elsewhere" })
		}, "rights",
		[]string{"Error RightMissing serviceaccount/freehold"},
		"it may not create, get, update leases.coordination.k8s.io", "",
	},
	"a policy without a binding": {
		func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.remove("ValidatingAdmissionPolicyBinding", "freehold-runners")
		}, "policies",
		[]string{"Warning NoBinding validatingadmissionpolicy.admissionregistration.k8s.io/freehold-runners"},
		"", "kubectl apply -k deploy/policy",
	},
	"a binding without a policy": {
		func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.remove("ValidatingAdmissionPolicy", "freehold-runners")
		}, "policies",
		[]string{"Warning NoPolicy validatingadmissionpolicy.admissionregistration.k8s.io/freehold-runners"},
		"", "",
	},
	"a policy whose binding only warns": {
		func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-runners", []any{"Warn", "Audit"}, "spec", "validationActions")
		}, "policies",
		[]string{"Warning NotEnforced validatingadmissionpolicy.admissionregistration.k8s.io/freehold-runners"},
		"Warn, Audit", "kubectl apply -k deploy/policy",
	},
	"a policy whose binding binds another one": {
		func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-runners", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-runners", "mine", "spec", "policyName")
		}, "policies",
		[]string{"Warning NoBinding validatingadmissionpolicy.admissionregistration.k8s.io/freehold-runners"},
		"mine", "kubectl apply -k deploy/policy",
	},
	"a policy that refuses the operator": {
		func(w *world) { w.add(fmt.Sprintf(policy, "freehold-field-managers", "platform")) }, "policies",
		[]string{"Error OtherOperator validatingadmissionpolicy.admissionregistration.k8s.io/freehold-field-managers"},
		"refuses what the operator writes", "docs/policies.md",
	},
	"a policy that warns of the operator": {
		func(w *world) { w.add(fmt.Sprintf(policy, "freehold-owned-fields", "platform")) }, "policies",
		[]string{"Warning OtherOperator validatingadmissionpolicy.admissionregistration.k8s.io/freehold-owned-fields"},
		"does not except the operator", "",
	},
	"a policy that does not fit": {
		func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-owned-fields", "freehold-system"))
			w.set("ValidatingAdmissionPolicy", "freehold-owned-fields",
				[]any{content{"fieldRef": "spec.validations[0]", "warning": "undefined field"}}, "status", "typeChecking", "expressionWarnings")
		}, "policies",
		[]string{"Warning TypeChecking validatingadmissionpolicy.admissionregistration.k8s.io/freehold-owned-fields"},
		"undefined field", "",
	},
	"a proxyrunner without a version": {
		func(w *world) {
			w.argument("--runner-image=example.com/runner")
			w.set("Deployment", "web", "example.com/runner", "spec", "template", "spec", "containers", 0, "image")
		}, "images",
		[]string{"Warning NoVersion deployment.apps/freehold"},
		"example.com/runner", "TOOLHIVE_RUNNER_IMAGE",
	},
	"a proxyrunner that is not tested": {
		func(w *world) {
			w.argument("--runner-image=example.com/runner:v0.50.0")
			w.set("Deployment", "web", "example.com/runner:v0.50.0", "spec", "template", "spec", "containers", 0, "image")
		}, "images",
		[]string{"Warning NotTested deployment.apps/freehold"},
		"v0.50.0", "",
	},
	"a proxyrunner that enforces less than an MCPServer asks for": {
		func(w *world) {
			w.server("shop", "leaky", "ToolConfigRefValidated=True/RunnerEnforcesLess/those before v0.63.0 pass on a compressed list unfiltered")
		}, "images",
		[]string{"Warning RunnerEnforcesLess mcpserver/leaky"},
		"compressed list", "TOOLHIVE_RUNNER_IMAGE",
	},
	"a proxy with another proxyrunner": {
		func(w *world) {
			w.set("Deployment", "web", "example.com/runner:mine", "spec", "template", "spec", "containers", 0, "image")
		}, "images",
		[]string{"Warning OtherRunner deployment.apps/web"},
		"example.com/runner:mine", "kubectl freehold owners -n shop deployment/web",
	},
	"an MCP server without a version": {
		func(w *world) { w.set("MCPServer", "web", "registry:5000/mcp", "spec", "image") }, "images",
		[]string{"Warning NoVersion mcpserver/web"},
		"registry:5000/mcp", "spec.image",
	},
	"a name that is taken": {
		func(w *world) {
			w.server("shop", "blocked", "FieldsOwned=False/ObjectNotOurs/service/mcp-blocked: an object of that name exists")
		}, "names",
		[]string{"Error ObjectNotOurs mcpserver/blocked"},
		"service/mcp-blocked", "kubectl freehold conflicts -n shop mcpserver/blocked",
	},
	"a name that is taken, beside a conflict": {
		func(w *world) {
			w.server("shop", "blocked", "FieldsOwned=False/FieldManagerConflict/helm owns replicas (+1 more)")
			w.add("apiVersion: v1\nkind: Service\nmetadata: {name: mcp-blocked, namespace: shop}")
		}, "names",
		[]string{"Error ObjectNotOurs mcpserver/blocked"},
		"service/mcp-blocked: an object with that name exists", "",
	},
}

// argument gives the operator one more.
func (w *world) argument(text string) {
	w.t.Helper()
	w.at("Deployment", "freehold", func(c content) {
		container := c["spec"].(content)["template"].(content)["spec"].(content)["containers"].([]any)[0].(content)
		container["args"] = append(container["args"].([]any), text)
	})
}

// properties changes those of spec or status in each version of the definition of MCPServers.
func (w *world) properties(of string, change func(content)) {
	w.t.Helper()
	w.at("CustomResourceDefinition", definitionOfServers, func(c content) {
		for _, version := range c["spec"].(content)["versions"].([]any) {
			all := version.(content)["schema"].(content)["openAPIV3Schema"].(content)["properties"].(content)
			change(all[of].(content)["properties"].(content))
		}
	})
}
