// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

// The option gives the operator a class, and a quota that names it, and changes nothing else.
func TestPriorityIsAClassAndAQuota(t *testing.T) {
	plain, option := installed(t), rendered(t, "priority")
	want, got := one(t, plain.deployments), one(t, option.deployments)
	if want.Spec.Template.Spec.PriorityClassName != "" {
		t.Errorf("without the option the class is %s", want.Spec.Template.Spec.PriorityClassName)
	}
	want.Spec.Template.Spec.PriorityClassName = "system-cluster-critical"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}
	quota := one(t, option.quotas)
	scopes := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{want.Spec.Template.Spec.PriorityClassName},
	}}}
	if diff := cmp.Diff(scopes, quota.Spec.ScopeSelector); diff != "" || quota.Namespace != want.Namespace {
		t.Errorf("quota in %s (-want +got):\n%s", quota.Namespace, diff)
	}
	// A rollout has one pod more, and those that end are counted until they have.
	if pods := quota.Spec.Hard.Pods().Value(); pods < 2*int64(*want.Spec.Replicas)+1 {
		t.Errorf("%d pods are allowed, want room for a rollout of %d", pods, *want.Spec.Replicas)
	}
	option.quotas, option.deployments, plain.deployments, plain.definitions = nil, nil, nil, nil
	if diff := cmp.Diff(plain, option, cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("the rest (-without +with the option):\n%s", diff)
	}
}

// The option is about the operator's ServiceAccount and nobody else, that its lease comes before the rest, and that it changes nothing
// else.
func TestFlowControlConcernsTheOperatorAlone(t *testing.T) {
	option := rendered(t, "flow-control")
	account := one(t, option.serviceAccounts)
	levels := map[string]string{}
	var precedence []int32
	for _, schema := range option.flowSchemas {
		levels[schema.Name] = schema.Spec.PriorityLevelConfiguration.Name
		precedence = append(precedence, schema.Spec.MatchingPrecedence)
		for _, rule := range schema.Spec.Rules {
			for _, subject := range rule.Subjects {
				if subject.ServiceAccount == nil || subject.ServiceAccount.Name != account.Name || subject.ServiceAccount.Namespace != account.Namespace {
					t.Errorf("%s is about %+v", schema.Name, subject)
				}
			}
		}
	}
	want := map[string]string{"freehold-leader-election": "leader-election", "freehold": one(t, option.priorityLevels).Name}
	if diff := cmp.Diff(want, levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if len(precedence) != 2 || precedence[0] == precedence[1] || slices.Max(precedence) >= 9000 {
		t.Errorf("the schemas have precedence %v, want the lease's first, and both before that of all ServiceAccounts", precedence)
	}
	plain := installed(t)
	option.flowSchemas, option.priorityLevels, plain.definitions = nil, nil, nil
	if diff := cmp.Diff(plain, option, cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("the rest (-without +with the option):\n%s", diff)
	}
}

// TestBudgetSelectsProxies shows that the budget of the sample selects the proxies of its MCPServer, neither its backend's pods nor those of
// another; that its affinity means the same pods; and that it lets one go, also where there is one alone. The page has the same
// budget, for NAME.
func TestBudgetSelectsProxies(t *testing.T) {
	parts := documents(t, Available)
	if len(parts) != 2 {
		t.Fatalf("%d objects, want 2", len(parts))
	}
	server, budget := strict[v1beta1.MCPServer](t, parts[0]), strict[policyv1.PodDisruptionBudget](t, parts[1])
	if !pinned(server.Spec.Image) || server.Spec.Replicas == nil || *server.Spec.Replicas < 2 {
		t.Errorf("the MCPServer is %+v", server.Spec)
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	other := server.DeepCopy()
	other.Name = "another"
	for what, pod := range map[string]struct {
		labels   map[string]string
		selected bool
	}{
		"its proxy": {render.ProxySelector(server.Name), true}, "another's proxy": {render.ProxySelector(other.Name), false},
		"its backend": {render.BackendLabels(&server), false}, "another's backend": {render.BackendLabels(other), false},
	} {
		if got := selector.Matches(labels.Set(pod.labels)); got != pod.selected {
			t.Errorf("%s is selected: %t, want %t", what, got, pod.selected)
		}
	}
	if b := budget.Spec; b.MinAvailable != nil || b.MaxUnavailable.IntValue() != 1 || *b.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("the budget is %+v", b)
	}
	// The API's type of an affinity is like Kubernetes' own, but not it.
	if !strings.Contains(string(parts[0]), "matchLabels:\n                  app: mcpserver\n                  app.kubernetes.io/instance: "+server.Name+"\n") {
		t.Error("the affinity does not mean the MCPServer's proxies")
	}

	page, err := os.ReadFile(filepath.Join("..", "docs", "availability.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```yaml\napiVersion: policy/v1\n")
	shown, _, _ = strings.Cut(shown, "```")
	inPage := strict[policyv1.PodDisruptionBudget](t, []byte("apiVersion: policy/v1\n"+strings.ReplaceAll(shown, "NAME", server.Name)))
	if diff := cmp.Diff(budget, inPage); diff != "" {
		t.Errorf("the budget (-of the sample +of docs/availability.md):\n%s", diff)
	}
	if !slices.Contains(strings.Split(string(page), "\n"), "components: [../options/priority]") {
		t.Error("docs/availability.md does not name the option")
	}
}
