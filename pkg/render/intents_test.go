// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Every object says who manages it, and its pods do not: their label would replace all pods with an upgrade.
func TestEveryObjectButPodsIsLabelledAsFreeholds(t *testing.T) {
	labelled := map[string]bool{}
	result := mustRender(t, fullInput(t), fullOptions)
	for _, intent := range result.Intents {
		object := &unstructured.Unstructured{Object: treeOf(t, intent.Config).(map[string]any)}
		of := intent.Kind.Kind + " " + intent.Name
		labelled[of] = labelled[of] || object.GetLabels()[v1beta1.LabelAppManagedBy] == v1beta1.AppManagedBy
		if pods, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels"); pods[v1beta1.LabelAppManagedBy] != "" {
			t.Errorf("the pods of %s have the label", of)
		}
	}
	for of, is := range labelled {
		if !is {
			t.Errorf("%s has not the label", of)
		}
	}
}

// Which objects there are, in which order they are applied and by whom, and which are not wanted.
func TestIntentsComeInTheOrderOfTheirApplies(t *testing.T) {
	account := func(name string) func(*v1beta1.MCPServer) {
		return func(s *v1beta1.MCPServer) { s.Spec.ServiceAccount = &name }
	}

	for name, c := range map[string]struct {
		change func(*v1beta1.MCPServer)
		// without are the children that are not rendered, and replicas tells that the numbers of pods are.
		without  []*inventory.Child
		replicas bool
		absent   []string
	}{
		"streamable-http": {change: withTransport("streamable-http"), without: []*inventory.Child{inventory.InlineAuthz}},
		"sse":             {change: withTransport("sse"), without: []*inventory.Child{inventory.InlineAuthz}},
		"stdio": {
			change:  withTransport("stdio"),
			without: []*inventory.Child{inventory.InlineAuthz, inventory.HeadlessService, inventory.BackendService},
			absent:  []string{"Service mcp-fetch-headless", "Service mcp-fetch"},
		},
		"inline authz": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{Policies: []string{permitAll}}}
			},
		},
		"replicas": {
			change: func(s *v1beta1.MCPServer) {
				zero, two := int32(0), int32(2)
				s.Spec.Replicas, s.Spec.BackendReplicas = &zero, &two
			},
			without: []*inventory.Child{inventory.InlineAuthz}, replicas: true,
		},
		"service account": {
			change: account("mine"), without: []*inventory.Child{inventory.InlineAuthz, inventory.BackendAccount},
			absent: []string{"ServiceAccount fetch-sa"},
		},
		"default service account": {
			change: account(""), without: []*inventory.Child{inventory.InlineAuthz, inventory.BackendAccount},
			absent: []string{"ServiceAccount fetch-sa"},
		},
		"service account of the name that we would give": {
			change: account("fetch-sa"), without: []*inventory.Child{inventory.InlineAuthz, inventory.BackendAccount},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, c.change)
			var want, got, absent []string
			for _, child := range inventory.Children() {
				if slices.Contains(c.without, child) {
					continue
				}
				object := child.Kind.Kind + " " + child.Name("fetch")
				if child.ByContent {
					object += "-DIGEST"
				}
				want = append(want, child.Writer+" "+object)
				if c.replicas && child.Replicas != "" {
					want = append(want, child.Replicas+" "+object)
				}
			}
			for _, intent := range result.Intents {
				name := intent.Name
				if inventory.HasDigest(name) {
					name = name[:strings.LastIndexByte(name, '-')+1] + "DIGEST"
				}
				got = append(got, intent.Writer+" "+intent.Kind.Kind+" "+name)
			}
			for _, ref := range result.Absent {
				absent = append(absent, ref.Kind.Kind+" "+ref.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("intents (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.absent, absent); diff != "" {
				t.Errorf("absent (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryIntentNamesItsObject: kind, name and namespace of each configuration are its intent's, every
// child belongs to its MCPServer, and none has a precondition: these are not rendering's business.
func TestEveryIntentNamesItsObject(t *testing.T) {
	forEachResult(t, func(t *testing.T, result *Result) {
		t.Helper()
		for _, intent := range result.Intents {
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal(jsonOf(t, intent.Config), &object.Object); err != nil {
				t.Fatal(err)
			}
			if got := object.GroupVersionKind().GroupKind(); got != intent.Kind {
				t.Errorf("kind is %s, the intent's %s", got, intent.Kind)
			}
			if object.GetName() != intent.Name || object.GetNamespace() != "tools" {
				t.Errorf("%s: object is %s/%s, the intent's name %s", intent.Kind, object.GetNamespace(), object.GetName(), intent.Name)
			}
			if object.GetResourceVersion() != "" || object.GetUID() != "" {
				t.Errorf("%s %s has a precondition", intent.Kind, intent.Name)
			}
			replicas := intent.Writer == managers.ProxyReplicas || intent.Writer == managers.BackendReplicas
			owners := object.GetOwnerReferences()
			switch {
			case replicas && len(owners) > 0:
				t.Errorf("%s writes more than replicas", intent.Writer)
			case !replicas && (len(owners) != 1 || owners[0].UID != "u-1" || owners[0].Name != "fetch" ||
				owners[0].Kind != "MCPServer" || owners[0].APIVersion != "toolhive.stacklok.dev/v1beta1" ||
				!*owners[0].Controller || !*owners[0].BlockOwnerDeletion):
				t.Errorf("%s %s is owned by %+v", intent.Kind, intent.Name, owners)
			}
		}
	})
}

// TestReplicasAreCappedWithStdio: on both tiers, with a notice each; and nothing else.
func TestReplicasAreCappedWithStdio(t *testing.T) {
	replicas := func(proxy, backend int32) func(*v1beta1.MCPServer) {
		return func(s *v1beta1.MCPServer) { s.Spec.Replicas, s.Spec.BackendReplicas = &proxy, &backend }
	}
	capped := func(field, count string) Problem {
		return Problem{"StdioReplicaCapped", "StdioTransportCapAt1", "spec." + field + " is " + count +
			" and rendered as 1: a server with transport stdio talks to one proxy through one pod."}
	}
	noStore := Problem{
		"SessionStorageWarning", "SessionStorageMissingForReplicas",
		"spec.replicas is 5, but the proxies share no session store; set spec.sessionStorage to redis.",
	}
	for name, c := range map[string]struct {
		transport              v1beta1.Transport
		proxy, backend         int32
		wantProxy, wantBackend int32
		notices                []Problem
	}{
		"stdio":      {"stdio", 5, 3, 1, 1, []Problem{capped("backendReplicas", "3"), capped("replicas", "5")}},
		"stdio zero": {"stdio", 0, 1, 0, 1, nil},
		"http":       {"sse", 5, 3, 5, 3, []Problem{noStore}},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, withTransport(c.transport), replicas(c.proxy, c.backend))
			got := map[string]any{}
			for _, intent := range result.Intents {
				if intent.Writer == managers.ProxyReplicas || intent.Writer == managers.BackendReplicas {
					got[intent.Writer] = treeOf(t, intent.Config).(map[string]any)["spec"]
				}
			}
			want := map[string]any{
				"freehold-proxy-replicas":   map[string]any{"replicas": float64(c.wantProxy)},
				"freehold-backend-replicas": map[string]any{"replicas": float64(c.wantBackend)},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.notices, result.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheURLIsWhereClientsGo(t *testing.T) {
	for name, c := range map[string]struct {
		transport, mode v1beta1.Transport
		want            string
	}{
		"streamable-http":  {"streamable-http", "sse", "http://mcp-fetch-proxy.tools.svc.cluster.local:8080/mcp"},
		"sse":              {"sse", "streamable-http", "http://mcp-fetch-proxy.tools.svc.cluster.local:8080/sse#fetch"},
		"stdio":            {"stdio", "streamable-http", "http://mcp-fetch-proxy.tools.svc.cluster.local:8080/mcp"},
		"stdio over sse":   {"stdio", "sse", "http://mcp-fetch-proxy.tools.svc.cluster.local:8080/sse#fetch"},
		"nothing is given": {"", "", "http://mcp-fetch-proxy.tools.svc.cluster.local:8080/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(func(s *v1beta1.MCPServer) {
				s.Spec.Transport, s.Spec.ProxyMode, s.Spec.ProxyPort = c.transport, c.mode, 0
			})
			if got := URL(server); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The backend's and the proxy's pods are never selected by each other's Service, and those of another workload with the MCPServer's name as
// app by none.
func TestServicesSelectThePodsOfTheirTierAlone(t *testing.T) {
	result := renderServer(t)
	matches := func(selector, labels map[string]string) bool {
		for key, value := range selector {
			if labels[key] != value {
				return false
			}
		}
		return true
	}
	proxy := deploymentOf(t, result).Spec.Template.Labels
	backend := statefulSetOf(t, result).Spec.Template.Labels
	for _, intent := range result.Intents {
		service, ok := intent.Config.(*corev1ac.ServiceApplyConfiguration)
		if !ok {
			continue
		}
		toProxy, toBackend := matches(service.Spec.Selector, proxy), matches(service.Spec.Selector, backend)
		if wantProxy := intent.Name == inventory.ProxyService.Name("fetch"); toProxy != wantProxy || toBackend == wantProxy {
			t.Errorf("Service %s selects proxy: %v, backend: %v", intent.Name, toProxy, toBackend)
		}
		if matches(service.Spec.Selector, map[string]string{"app": "fetch"}) || service.Spec.Selector["toolhive-name"] != "fetch" {
			t.Errorf("Service %s selects by %v, and so pods of others", intent.Name, service.Spec.Selector)
		}
		if *service.Spec.Ports[0].Protocol != corev1.ProtocolTCP {
			t.Errorf("Service %s has a port without protocol", intent.Name)
		}
	}
	if !matches(ProxySelector("fetch"), proxy) || !matches(BackendSelector("fetch"), backend) {
		t.Error("the exported selectors do not select the pods")
	}
	if all, err := labels.Parse(AnyProxySelector()); err != nil || !all.Matches(labels.Set(proxy)) || all.Matches(labels.Set(backend)) {
		t.Errorf("%s selects proxies and backends as it should not: %v", AnyProxySelector(), err)
	}
	for want, c := range map[workload.Role]struct{ selector, pod map[string]string }{
		workload.RoleProxy: {ProxySelector("fetch"), proxy}, workload.RoleBackend: {backendServiceSelector("fetch"), backend},
	} {
		roleOf := func(labels map[string]string) workload.Role {
			return workload.PodOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}).Role
		}
		if roleOf(c.pod) != want || roleOf(c.selector) != want {
			t.Errorf("pods are taken for %q and %q, not for a %s's", roleOf(c.pod), roleOf(c.selector), want)
		}
		for label := range c.selector {
			without := maps.Clone(c.selector)
			if delete(without, label); roleOf(without) != "" {
				t.Errorf("without the label %s, which the Service asks for, a pod is still taken for a %s's", label, want)
			}
		}
	}
}
