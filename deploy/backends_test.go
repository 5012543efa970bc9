// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

// fences are the selectors of the NetworkPolicy for backends: whom it is about, and whom it lets in.
type fences struct{ backends, proxies labels.Selector }

func fencesOf(t *testing.T, policy *networkingv1.NetworkPolicy) fences {
	t.Helper()
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes); diff != "" {
		t.Errorf("policyTypes (-want +got):\n%s", diff)
	}
	rule := one(t, policy.Spec.Ingress)
	peer := one(t, rule.From)
	if len(rule.Ports) > 0 || peer.NamespaceSelector != nil || peer.IPBlock != nil || peer.PodSelector == nil {
		t.Fatalf("the rule is %+v", rule)
	}
	backends, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	return fences{backends, proxies}
}

// TestBackendNetworkPolicyLetsProxiesIn shows that the option is one NetworkPolicy in the namespace of the MCPServers, that it is about the
// backends of all transports, and that it lets in proxies of the namespace and nothing else.
func TestBackendNetworkPolicyLetsProxiesIn(t *testing.T) {
	option := rendered(t, "backend-network-policy")
	policy := one(t, option.networkPolicies)
	if policy.Namespace != "mcp-servers" {
		t.Errorf("it is in %s", policy.Namespace)
	}
	option.networkPolicies = nil
	if diff := cmp.Diff(objects{}, option, cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("the option has more (-nothing +got):\n%s", diff)
	}
	if plain := strict[networkingv1.NetworkPolicy](t, BackendNetworkPolicy); !cmp.Equal(plain.Spec, policy.Spec) {
		t.Error("what is embedded is not what is rendered")
	}
	between := fencesOf(t, &policy)
	check := func(what string, pod labels.Set, backend, proxy bool) {
		t.Helper()
		if got := between.backends.Matches(pod); got != backend {
			t.Errorf("%s is fenced in as a backend: %t, want %t", what, got, backend)
		}
		if got := between.proxies.Matches(pod); got != proxy {
			t.Errorf("%s is let in as a proxy: %t, want %t", what, got, proxy)
		}
	}
	// Freehold refuses an MCPServer called mcpserver, and ToolHive does not: its backend has the first label of a proxy, and its author can add
	// the others.
	imitation := labels.Set{v1beta1.LabelAppName: "mcpserver", v1beta1.LabelAppInstance: "web"}
	for _, name := range []string{"web", "mcpserver"} {
		check("the proxy of "+name, render.ProxySelector(name), false, true)
		for _, transport := range []v1beta1.Transport{v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP, ""} {
			server := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.MCPServerSpec{Transport: transport}}
			backend := render.BackendLabels(server)
			check(string(transport)+" backend of "+name, backend, true, false)
			maps.Copy(backend, imitation)
			check(string(transport)+" backend of "+name+" with labels of a proxy", backend, true, false)
		}
	}
	check("a neighbour", labels.Set{"app": "shop"}, false, false)
	check("a neighbour without labels", nil, false, false)
	check("a neighbour to which the backend's Services lead", labels.Set{v1beta1.LabelApp: "web", v1beta1.LabelToolHiveName: "web"}, false, false)
	check("the operator", one(t, installed(t).deployments).Spec.Template.Labels, false, false)

	if !strings.Contains(read(t, filepath.FromSlash("../docs/security.md")), "//deploy/options/backend-network-policy?ref=v") {
		t.Error("docs/security.md does not show the option")
	}
}

// TestBackendNetworkPolicyKnowsThePodsThatToolHiveMade: a takeover restarts no pod, so the policy has to know the pods of ToolHive's
// Deployments and StatefulSets as well. The recordings are of what one of its releases has made.
func TestBackendNetworkPolicyKnowsThePodsThatToolHiveMade(t *testing.T) {
	policy := strict[networkingv1.NetworkPolicy](t, BackendNetworkPolicy)
	between := fencesOf(t, &policy)
	files, err := filepath.Glob(filepath.FromSlash("../test/harness/testdata/toolhive/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var workload appsv1.Deployment // A StatefulSet has its template at the same place.
			if yaml.Unmarshal(document, &workload) != nil || workload.Kind != "Deployment" && workload.Kind != "StatefulSet" {
				continue
			}
			found[workload.Kind]++
			pods, backend := labels.Set(workload.Spec.Template.Labels), workload.Kind == "StatefulSet"
			if between.backends.Matches(pods) != backend || between.proxies.Matches(pods) == backend {
				t.Errorf("%s: the pods of the %s have the labels %v", file, workload.Kind, pods)
			}
		}
	}
	if found["Deployment"] == 0 || found["StatefulSet"] == 0 {
		t.Errorf("the recordings have %v", found)
	}
}
