// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A healthy installation has no finding, and everything is looked at.
func TestAHealthyInstallationHasNoFinding(t *testing.T) {
	found := newWorld(t).examine()
	for _, c := range found.Checks {
		if c.State != OK || len(c.Findings)+len(c.NotChecked) > 0 || c.Detail == "" {
			t.Errorf("%s is %s: %+v %v, detail %q", c.Name, c.State, c.Findings, c.NotChecked, c.Detail)
		}
	}
	if found.State != OK || len(found.Checks) != len(checks) {
		t.Errorf("it is %s, with %d checks", found.State, len(found.Checks))
	}
}

func TestEachBreakageIsFound(t *testing.T) {
	for name, test := range breakages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			found := w.examine()
			var got, messages, ways []string
			worst := OK
			for _, f := range found.check(test.check).Findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Reason, f.Object))
				messages, ways, worst = append(messages, f.Message), append(ways, f.Do), worse(worst, f.Severity)
				if f.Do == "" || f.Message == "" {
					t.Errorf("it does not say what is wrong, or what to do: %+v", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(messages, "\n"), test.says) {
				t.Errorf("it does not say %q: %q", test.says, messages)
			}
			if !strings.Contains(strings.Join(ways, "\n"), test.wayOut) {
				t.Errorf("%q is not what to do: %q", test.wayOut, ways)
			}
			if state := found.check(test.check).State; state != worst {
				t.Errorf("the check is %s, want %s", state, worst)
			}
			for _, c := range found.Checks {
				// A part of a policy is one more thing that is wrong.
				if c.Name != test.check && len(c.Findings) > 0 && c.Name != "policies" {
					t.Errorf("the check %s has found something as well: %+v", c.Name, c.Findings)
				}
			}
		})
	}
}

func TestALeaderWhoseClockIsAheadHasRenewedJustNow(t *testing.T) {
	w := newWorld(t)
	w.set("Lease", "freehold", "2026-06-01T12:01:00.000000Z", "spec", "renewTime")
	if detail := w.examine().check("leader").Detail; !strings.HasSuffix(detail, "renewed it 0s ago") {
		t.Errorf("the check says %q", detail)
	}
}

// What is as it should be, and looks like a breakage.
func TestWhatLooksLikeABreakageIsNone(t *testing.T) {
	for name, do := range map[string]func(w *world){
		"Helm keeps the definitions": func(w *world) {
			w.set("CustomResourceDefinition", definitionOfServers, content{"app.kubernetes.io/managed-by": "Helm"}, "metadata", "labels")
			w.set("CustomResourceDefinition", definitionOfServers, content{
				"meta.helm.sh/release-name": "crds", "meta.helm.sh/release-namespace": "toolhive-system", "helm.sh/resource-policy": "keep",
			}, "metadata", "annotations")
		},
		"ToolHive's operator, which the policy keeps from MCPServers": func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
		},
		"ToolHive's operator, which the policy names": func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.about("system:serviceaccount:elsewhere:default")
		},
		"a policy for all namespaces, none of which may be read": func(w *world) {
			w.add(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""))
			w.add(fmt.Sprintf(policy, "freehold-toolhive-operator", "freehold-system"))
			w.mayNot = []string{"get namespaces"}
		},
		"a policy that is to warn": func(w *world) {
			w.add(fmt.Sprintf(policy, "freehold-owned-fields", "freehold-system"))
			w.set("ValidatingAdmissionPolicyBinding", "freehold-owned-fields", []any{"Warn", "Audit"}, "spec", "validationActions")
		},
		"ToolHive's operator in other namespaces": func(w *world) {
			w.argument("--watch-namespaces=shop")
			w.add(strings.Replace(fmt.Sprintf(anotherOperator, "thv", "toolhive-operator", ""), "args: []", "env: [{name: WATCH_NAMESPACE, value: other}]", 1))
		},
		"two operators of Freehold's with namespaces of their own": func(w *world) {
			w.argument("--watch-namespaces=shop")
			w.add(fmt.Sprintf(anotherOperator, "second", "freehold", "--watch-namespaces=other"))
		},
		"a second operator that watches its own namespace": func(w *world) {
			w.argument("--watch-namespaces=shop")
			w.add(strings.Replace(fmt.Sprintf(anotherOperator, "second", "freehold", ""), "args: []",
				"env: [{name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]", 1))
		},
		"two operators of Freehold's with MCPServers of their own": func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
		},
		"an operator of other MCPServers that is on its way out": func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			w.leaving("freehold-a")
		},
		"two operators of Freehold's with arguments in words of their own": func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector", "shard=a", "--leader-elect-resource-name", "freehold-a")
		},
		"the proxies of another operator have its proxyrunner": func(w *world) {
			w.argument("--mcpserver-selector=shard notin (a)")
			w.shard("freehold-a", "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a")
			w.set("MCPServer", "web", content{"shard": "a"}, "metadata", "labels")
			w.set("Deployment", "web", "example.com/runner:next", "spec", "template", "spec", "containers", 0, "image")
		},
		"two Deployments that elect one leader": func(w *world) {
			w.shard("freehold-blue")
		},
		"one replica that elects no leader": func(w *world) {
			w.argument("--leader-elect=false")
			w.set("Deployment", "freehold", int64(1), "spec", "replicas")
			w.remove("Lease", "freehold")
		},
		"an image with a digest": func(w *world) {
			w.set("MCPServer", "web", "registry:5000/mcp@sha256:0000", "spec", "image")
		},
		"an operator with a digest": func(w *world) {
			w.set("Deployment", "freehold", "registry:5000/freehold@sha256:0000", "spec", "template", "spec", "containers", 0, "image")
		},
		"namespaces of the environment": func(w *world) {
			w.at("Deployment", "freehold", func(c content) {
				container := c["spec"].(content)["template"].(content)["spec"].(content)["containers"].([]any)[0].(content)
				container["env"] = append(container["env"].([]any), content{"name": "WATCH_NAMESPACE", "value": "shop"})
			})
			w.add(fmt.Sprintf(anotherOperator, "second", "freehold", "--watch-namespaces=other"))
		},
		"a plugin that is no release":     func(w *world) { w.plugin = "v0.0.0-local" },
		"a plugin of a commit in between": func(w *world) { w.plugin = "v0.1.0-dev+0123456789ab" },
		"an old restart": func(w *world) {
			w.set("Pod", leading, content{"terminated": content{"reason": "Error", "exitCode": int64(1), "finishedAt": "2026-05-01T11:00:00Z"}},
				"status", "containerStatuses", 0, "lastState")
		},
		"RBAC is read, where the user may not ask": func(w *world) { w.mayNot = []string{"create subjectaccessreviews"} },
		"RBAC of a few namespaces": func(w *world) {
			w.mayNot = []string{"create subjectaccessreviews"}
			w.argument("--watch-namespaces=shop")
			w.remove("ClusterRoleBinding", "freehold")
			w.add("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: freehold, namespace: shop}\n" +
				"roleRef: {kind: ClusterRole, name: freehold}\nsubjects: [{kind: ServiceAccount, name: freehold, namespace: freehold-system}]")
		},
		"RBAC of the whole cluster, for a few namespaces": func(w *world) {
			w.mayNot = []string{"create subjectaccessreviews"}
			w.argument("--watch-namespaces=shop")
		},
		"all policies": func(w *world) {
			for _, name := range policies {
				w.add(fmt.Sprintf(policy, name, "freehold-system"))
			}
		},
		"a proxy that is ToolHive's": func(w *world) {
			w.set("Deployment", "web", "example.com/runner:mine", "spec", "template", "spec", "containers", 0, "image")
			w.set("Deployment", "web", nil, "metadata", "managedFields")
		},
		"an owner in a version that is not served": func(w *world) {
			w.at("MCPServer", "web", func(c content) {
				holdBy(c, "kubectl", `{"f:spec":{"f:image":{}}}`)
				c["metadata"].(content)["managedFields"].([]any)[0].(content)["apiVersion"] = "toolhive.stacklok.dev/v1alpha1"
			})
			w.at("CustomResourceDefinition", definitionOfServers, func(c content) {
				for _, version := range c["spec"].(content)["versions"].([]any) {
					version.(content)["served"] = version.(content)["name"] != "v1alpha1"
				}
			})
		},
		"a conflict": func(w *world) {
			w.server("shop", "contested", "FieldsOwned=False/FieldManagerConflict/helm owns replicas (+1 more)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			do(w)
			for _, c := range w.examine().Checks {
				if c.State != OK {
					t.Errorf("%s is %s: %+v %v", c.Name, c.State, c.Findings, c.NotChecked)
				}
			}
		})
	}
}

// Without a right a check is not taken for healthy: it names the right, and the others are made.
func TestACheckWithoutARightIsNotTakenForHealthy(t *testing.T) {
	const at = " at the cluster scope"
	for _, test := range []struct {
		mayNot []string
		checks []string
		says   string
	}{
		{[]string{"get customresourcedefinitions"}, []string{"crds"}, `get resource "customresourcedefinitions" in API group "apiextensions.k8s.io"` + at},
		{[]string{"get deployments"}, []string{"operator", "leader", "restarts", "version", "operators", "rights", "images"}, `get resource "deployments" in API group "apps" in the namespace "freehold-system"`},
		{[]string{"get leases"}, []string{"leader"}, `get resource "leases"`},
		{[]string{"list leases"}, []string{"operators"}, `list resource "leases"`},
		{[]string{"list services"}, []string{"services"}, `list resource "services"`},
		{[]string{"list pods"}, []string{"leader", "restarts", "operators", "services"}, `list resource "pods"`},
		{[]string{"list deployments"}, []string{"operators", "images"}, `list resource "deployments"`},
		{[]string{"create subjectaccessreviews", "list clusterrolebindings"}, []string{"rights"}, `list resource "clusterrolebindings"`},
		{[]string{"create subjectaccessreviews", "get clusterroles"}, []string{"rights"}, `get resource "clusterroles"`},
		{[]string{"get validatingadmissionpolicies"}, []string{"policies"}, `get resource "validatingadmissionpolicies"`},
		{[]string{"get validatingadmissionpolicybindings"}, []string{"policies"}, `get resource "validatingadmissionpolicybindings"`},
		{[]string{"list mcpgroups"}, []string{"crds"}, `list resource "mcpgroups" in API group "toolhive.stacklok.dev"` + at},
		{[]string{"list mcpservers"}, []string{"crds", "operators", "images", "names", "services"}, `list resource "mcpservers" in API group "toolhive.stacklok.dev"` + at},
	} {
		w := newWorld(t)
		w.mayNot = test.mayNot
		found := w.examine()
		for _, c := range found.Checks {
			if !slices.Contains(test.checks, c.Name) {
				if c.State != OK {
					t.Errorf("without %v %s is %s: %+v %v", test.mayNot, c.Name, c.State, c.Findings, c.NotChecked)
				}
				continue
			}
			if c.State != NotChecked || len(c.NotChecked) == 0 {
				t.Errorf("without %v %s is %s: %v", test.mayNot, c.Name, c.State, c.NotChecked)
			}
		}
		first := found.check(test.checks[0]).NotChecked
		if found.State != NotChecked || !slices.ContainsFunc(first, func(text string) bool {
			return strings.Contains(text, "needs the right to ") && strings.Contains(text, test.says)
		}) {
			t.Errorf("without %v it is %s, and %s says %v", test.mayNot, found.State, test.checks[0], first)
		}
	}
}

func TestWhatIsWrongIsToldWhateverCannotBeLookedAt(t *testing.T) {
	w := newWorld(t)
	w.mayNot = []string{"list pods"}
	w.set("Lease", "freehold", "", "spec", "holderIdentity")
	if found := w.examine(); found.State != Error || found.check("restarts").State != NotChecked {
		t.Errorf("it is %s, and restarts %s", found.State, found.check("restarts").State)
	}
}

func TestWithoutAnOperatorTheOtherChecksGoOn(t *testing.T) {
	w := newWorld(t)
	w.remove("Deployment", "freehold")
	found := w.examine()
	if c := found.check("operator"); len(c.Findings) != 1 || c.Findings[0].Reason != "NoOperator" || !strings.Contains(c.Findings[0].Do, "--operator=") {
		t.Errorf("it says %+v", c)
	}
	for _, name := range []string{"leader", "restarts", "version", "rights"} {
		if c := found.check(name); c.State != NotChecked || !strings.Contains(c.NotChecked[0], `"freehold" not found`) {
			t.Errorf("%s is %s: %v", name, c.State, c.NotChecked)
		}
	}
	for _, name := range []string{"crds", "operators", "policies", "names"} {
		if c := found.check(name); c.State != OK {
			t.Errorf("%s is %s", name, c.State)
		}
	}
}

// An operator whose arguments cannot be read is not taken for one with the defaults.
func TestArgumentsThatCannotBeReadAreNoDefaults(t *testing.T) {
	w := newWorld(t)
	w.argument("--leader-elect=perhaps")
	if c := w.examine().check("leader"); c.State != NotChecked || !strings.Contains(c.NotChecked[0], "perhaps") {
		t.Errorf("the leader is %s: %v", c.State, c.NotChecked)
	}
}

// A cluster that does not answer is an error, at once.
func TestAClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	w := newWorld(t)
	w.broken = true
	if found, err := Examine(w.subject()); err == nil || len(found.Checks) > 0 {
		t.Errorf("it ends with %v, and %+v", err, found.Checks)
	}
}

func TestARequestWithoutAnAnswerCostsTheChecksThatNeedIt(t *testing.T) {
	for lost, check := range map[string]string{
		"get leases": "leader", "list pods": "restarts", "get deployments": "operator", "get validatingadmissionpolicies": "policies",
	} {
		w := newWorld(t)
		w.lost = []string{lost}
		found := w.examine()
		if c := found.check(check); c.State != NotChecked || !strings.Contains(c.NotChecked[0], "connection lost") {
			t.Errorf("without an answer to %s, %s is %s: %q", lost, check, c.State, c.NotChecked)
		}
		if c := found.check("crds"); c.State != OK {
			t.Errorf("without an answer to %s, crds is %s", lost, c.State)
		}
	}
}

func TestTestedProxyrunnersAreThoseOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(text), "## Kubernetes")
	var named []string
	for _, match := range regexp.MustCompile(`(?m)^\| (v[0-9.]+)[ ,]`).FindAllStringSubmatch(section, -1) {
		named = append(named, match[1])
	}
	if diff := cmp.Diff(named, tested); diff != "" {
		t.Errorf("docs/compatibility.md names (-) and doctor knows (+):\n%s", diff)
	}
}

// TestNewerProxyrunnerIsNotCalledWrong: doctor advises no step back from a proxyrunner that is newer than the default.
func TestNewerProxyrunnerIsNotCalledWrong(t *testing.T) {
	w := newWorld(t)
	w.argument("--runner-image=example.com/runner:v0.99.0")
	w.set("Deployment", "web", "example.com/runner:v0.99.0", "spec", "template", "spec", "containers", 0, "image")
	found := w.examine().check("images")
	if found.State != OK || len(found.Findings) > 0 {
		t.Errorf("images is %s: %+v", found.State, found.Findings)
	}
	if text := "newer than this Freehold was tested with"; strings.Count(found.Detail, text) != 1 {
		t.Errorf("the detail %q does not say once %q", found.Detail, text)
	}
}

// Before Freehold is installed there is no operator and no CRD to find fault with. What would be in its way is found all the same.
func TestBeforeAnInstallationOnlyWhatIsInItsWayIsFound(t *testing.T) {
	w := newWorld(t)
	w.remove("Deployment", "freehold")
	w.remove("Lease", "freehold")
	for _, pod := range []string{leading, "freehold-5d8f7c-bbbbb"} {
		w.remove("Pod", pod)
	}
	w.remove("CustomResourceDefinition", "mcpgroups.toolhive.stacklok.dev")
	before := func() Diagnosis {
		subject := w.subject()
		subject.Pre = true
		found, err := Examine(subject)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	w.remove("Deployment", "web")
	if found := before(); found.State != OK || len(found.Checks) != 5 {
		t.Errorf("it finds %+v", found)
	}
	w.add("apiVersion: v1\nkind: Service\nmetadata: {name: mcp-web-proxy, namespace: shop}\n")
	if c := before().check("names"); c.State != Error || len(c.Findings) != 1 || !strings.Contains(c.Findings[0].Message, "service/mcp-web-proxy") {
		t.Errorf("with a Service of a child's name it finds %+v", c)
	}
}
