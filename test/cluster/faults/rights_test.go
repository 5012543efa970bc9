// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// namespacedManifests are what deploy/namespaced renders to.
var namespacedManifests = filepath.Join("..", "..", "..", "deploy", "install-namespaced.yaml")

// namespacedRole reads the Role that deploy/namespaced gives the operator in each namespace.
func namespacedRole(t *testing.T) *rbacv1.Role {
	t.Helper()
	text, err := os.ReadFile(namespacedManifests)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := operator.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Role" && object.GetNamespace() != operator.Namespace {
			role := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				t.Fatal(err)
			}
			return role
		}
	}
	t.Fatal("there is no Role for a namespace")
	return nil
}

// narrow is an operator's ServiceAccount that has rights in some namespaces alone.
type narrow struct{ namespace, name string }

// newNarrow makes a ServiceAccount in the namespace. It has no rights yet.
func (s *stage) newNarrow(t *testing.T, name string) narrow {
	t.Helper()
	account := narrow{s.Name, name}
	_, err := s.Core.CoreV1().ServiceAccounts(account.namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// grant gives a ServiceAccount rights in the namespace.
func (s *stage) grant(t *testing.T, to narrow, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: to.name}
	if _, err := s.Core.RbacV1().Roles(s.Name).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: to.namespace, Name: to.name}},
	}
	if _, err := s.Core.RbacV1().RoleBindings(s.Name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kubeconfig is the flag by which an operator acts in the ServiceAccount's name.
func (n narrow) kubeconfig(t *testing.T, on *harness.Env) string {
	t.Helper()
	path, err := on.Cluster.ServiceAccountKubeconfig(t.Context(), n.namespace, n.name)
	if err != nil {
		t.Fatal(err)
	}
	return "--kubeconfig=" + path
}

// requests returns what the ServiceAccount has asked for since the mark.
func (n narrow) requests(t *testing.T, s *stage, since audit.Mark) []*audit.Event {
	t.Helper()
	s.Mark(t)
	events, _, err := s.Audit.Since(since, audit.ServiceAccount(n.namespace, n.name))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestWatchNamespaces runs an operator for two namespaces, with the rights that deploy/namespaced gives it there and
// nowhere else. It works in these, needs nothing else, and does not as much as look at a third.
func TestWatchNamespaces(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	one, two, other := newStage(t, env), newStage(t, env), newStage(t, env)
	account := one.newNarrow(t, "narrow-operator")
	rules := namespacedRole(t).Rules
	one.grant(t, account, rules)
	two.grant(t, account, rules)
	for _, s := range []*stage{one, two, other} {
		s.Create(t, harness.HTTPServer("web", harness.InlineAuthorization, harness.Replicas(1, 1)))
	}
	began := one.Mark(t)
	one.Operator(t, harness.Watching(one.Name+","+two.Name), account.kubeconfig(t, env))
	for _, s := range []*stage{one, two} {
		s.AwaitStatus(t, "web", harness.Fine...)
		s.AwaitSettled(t, "web")
		s.CheckOwnership(t, "web")
		s.Edit(t, "web", func(server *v1beta1.MCPServer) {
			server.Spec.Image, server.Spec.Transport, server.Spec.AuthzConfig = harness.OtherImage, v1beta1.TransportStdio, nil
		})
		s.AwaitStatus(t, "web", harness.Fine...)
		s.AwaitImage(t, "web", harness.OtherImage)
		s.Delete(t, "web", metav1.DeletePropagationForeground)
		s.AwaitGone(t, "web")
	}

	server, err := other.Servers.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(server.Finalizers) > 0 || server.Status.Phase != "" {
		t.Errorf("an MCPServer in another namespace was touched: %+v", server)
	}
	if got := other.ChildVersions(t)["web"]; len(got) > 0 {
		t.Errorf("an MCPServer in another namespace has the children %v", got.Components())
	}
	requests := account.requests(t, one, began)
	if len(requests) == 0 {
		t.Fatal("the operator sent no requests")
	}
	for _, e := range requests {
		inside := e.Namespace == one.Name || e.Namespace == two.Name
		if e.Resource != "" && !inside || e.Code == http.StatusForbidden {
			t.Errorf("a request that is not covered by the rights: %v", e)
		}
	}
}

// TestNamespaceWithoutRights watches two namespaces, of which one cannot be read. The operator works in the other, tells so in its
// metrics, and begins in the second when it may.
func TestNamespaceWithoutRights(t *testing.T) {
	t.Parallel()
	one, two := newStage(t, env), newStage(t, env)
	account := one.newNarrow(t, "narrow-operator")
	one.grant(t, account, namespacedRole(t).Rules)
	process := one.Operator(t, harness.Watching(one.Name+","+two.Name), account.kubeconfig(t, env))
	for _, s := range []*stage{one, two} {
		s.Create(t, harness.HTTPServer("web"))
	}
	one.AwaitStatus(t, "web", harness.Fine...)
	failing := func(namespace string) float64 {
		t.Helper()
		lasts, err := harness.Metric(t.Context(), process, "freehold_watch_failing_seconds", `kind="MCPServer"`, fmt.Sprintf("watched_namespace=%q", namespace))
		if err != nil {
			t.Fatal(err)
		}
		return lasts
	}
	if lasts := failing(two.Name); lasts == 0 {
		t.Error("no metric tells that a namespace cannot be read")
	}
	if lasts := failing(one.Name); lasts > 0 {
		t.Errorf("the namespace that can be read cannot be read for %v s", lasts)
	}
	if children := two.ChildVersions(t)["web"]; len(children) > 0 {
		t.Errorf("the MCPServer in the other namespace has the children %v", children.Components())
	}
	two.grant(t, account, namespacedRole(t).Rules)
	two.AwaitStatus(t, "web", harness.Fine...)
}

// TestMissingRight takes the right to write Services from an operator, and gives it back. It tells so, and goes on with
// all else.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	account := s.newNarrow(t, "narrow-operator")
	full := namespacedRole(t).Rules
	s.grant(t, account, withoutWriting(t, full, "services"))
	s.Operator(t, harness.Watching(s.Name), account.kubeconfig(t, env))
	s.Create(t, harness.HTTPServer("web"))
	expect := harness.WriteForbidden("service/mcp-web-headless", "cannot", `resource "services"`, "(+2 more)")
	s.AwaitStatus(t, "web", expect)
	s.AwaitWarning(t, "web", expect)
	want := slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool {
		return slices.Contains([]harness.Component{harness.BackendService, harness.HeadlessService, harness.ProxyService}, component)
	})
	s.AwaitComponents(t, "web", want)

	roles := s.Core.RbacV1().Roles(s.Name)
	role, err := roles.Get(t.Context(), account.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = full
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitStatus(t, "web", harness.Fine...)
}

// TestMissingRightToRefer takes the right to list MCPToolConfigs from an operator, and gives it back. An MCPServer that refers to one
// is told so, and what refers to none, or to something else, works. No restart is needed.
func TestMissingRightToRefer(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	account := s.newNarrow(t, "narrow-operator")
	full := namespacedRole(t).Rules
	s.grant(t, account, withoutResource(t, full, "mcptoolconfigs"))
	s.Operator(t, harness.Watching(s.Name), account.kubeconfig(t, env))
	s.Create(t, harness.HTTPServer("plain"))
	s.Create(t, harness.HTTPServer("filtered", func(server *v1beta1.MCPServer) {
		server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "tools"}
	}))
	_, err := s.Env.Servers.ToolhiveV1beta1().MCPToolConfigs(s.Name).Create(t.Context(), &v1beta1.MCPToolConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "tools"}, Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"only-this"}},
	}, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	s.AwaitStatus(t, "plain", harness.Fine...)
	tools := harness.Expectation{Condition: v1beta1.ConditionToolConfigRefValidated, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonToolConfigRefError}
	s.AwaitStatus(t, "filtered", tools.Saying("not allowed to list MCPToolConfigs", "apply the manifests", "No proxy is made"))

	roles := s.Core.RbacV1().Roles(s.Name)
	role, err := roles.Get(t.Context(), account.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = full
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	tools.Status, tools.Reason = metav1.ConditionTrue, v1beta1.ReasonToolConfigRefValid
	s.AwaitStatus(t, "filtered", append(slices.Clone(harness.Fine), tools)...)
}

// withoutResource are rules that leave nothing of a resource.
func withoutResource(t *testing.T, rules []rbacv1.PolicyRule, resource string) (less []rbacv1.PolicyRule) {
	t.Helper()
	taken := false
	for _, rule := range rules {
		if at := slices.Index(rule.Resources, resource); at >= 0 {
			rule.Resources, taken = slices.Delete(slices.Clone(rule.Resources), at, at+1), true
		}
		less = append(less, rule)
	}
	if !taken {
		t.Fatalf("the rules have nothing about %s: %v", resource, rules)
	}
	return less
}

// withoutWriting are rules that leave of a core resource the reading alone.
func withoutWriting(t *testing.T, rules []rbacv1.PolicyRule, resource string) []rbacv1.PolicyRule {
	t.Helper()
	var less []rbacv1.PolicyRule
	taken := false
	for _, rule := range rules {
		at := slices.Index(rule.Resources, resource)
		if slices.Contains(rule.APIGroups, "") && at >= 0 && slices.Contains(rule.Verbs, "patch") {
			rule.Resources = slices.Delete(slices.Clone(rule.Resources), at, at+1)
			less = append(less, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list", "watch"}})
			taken = true
		}
		less = append(less, rule)
	}
	if !taken {
		t.Fatalf("the rules have nothing about writing %s: %v", resource, rules)
	}
	return less
}
