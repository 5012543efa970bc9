// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// permission is one verb on one resource; names limits it to objects, if not empty.
type permission struct {
	group, resource, verb, names string
}

func (p permission) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", p.verb, p.resource, p.group, p.names))
}

func permissionsOf(rules []rbacv1.PolicyRule) map[permission]bool {
	all := map[permission]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[permission{group, resource, verb, strings.Join(rule.ResourceNames, ",")}] = true
				}
			}
		}
	}
	return all
}

// TestOperatorMayDoWhatItsWritersNeed holds the ClusterRole to the table of writers: nothing is missing and
// nothing is left over.
func TestOperatorMayDoWhatItsWritersNeed(t *testing.T) {
	resources := map[schema.GroupKind]string{managers.MCPServer: "mcpservers"}
	for _, child := range inventory.Children() {
		resources[child.Kind] = child.Resource
	}
	for _, config := range managers.Configs() {
		resources[config.GroupKind()] = config.Resource
	}
	want := map[permission]bool{}
	allow := func(group, resource string, verbs ...string) {
		for _, verb := range verbs {
			want[permission{group: group, resource: resource, verb: verb}] = true
		}
	}
	for _, writer := range managers.Registry().Writers() {
		resource, ok := resources[writer.Kind]
		if !ok {
			t.Fatalf("field manager %s writes %s, of which this test does not know the resource", writer.Name, writer.Kind)
		}
		switch {
		case writer.Subresource != "":
			allow(writer.Kind.Group, resource+"/"+writer.Subresource, "patch")
		case writer.Kind == managers.MCPServer:
			// The user creates and deletes it.
			allow(writer.Kind.Group, resource, "list", "watch", "patch")
		case managers.ConfigOf(writer.Kind) != nil:
			// So with these; get is for a proxy that claims to be ahead of the cache.
			allow(writer.Kind.Group, resource, "get", "list", "watch", "patch")
		default:
			// Get is for what a cache does not keep: whose each field is.
			allow(writer.Kind.Group, resource, "get", "list", "watch", "create", "patch", "delete")
		}
	}
	// Counted before what they refer to is let go.
	counted := []string{"mcpremoteproxies", "mcpserverentries", "virtualmcpservers"}
	for _, resource := range counted {
		allow(toolhive.GroupName, resource, "list", "watch")
	}
	// Observed, and deleted for a restart that is not to wait.
	allow("", "pods", "list", "watch", "delete")
	allow("", "pods/eviction", "create")
	allow("apps", "replicasets", "list", "watch")
	// Told. Those of a StatefulSet are read while it lacks a pod.
	allow("events.k8s.io", "events", "create", "list", "patch")
	// Granted to each proxyrunner, beside "get statefulsets" and "list pods": nobody can grant what he does not hold.
	allow("", "pods/attach", "create")

	got := permissionsOf(one(t, installed(t).clusterRoles).Rules)
	for _, p := range sorted(want) {
		if !got[p] {
			t.Errorf("the ClusterRole lacks: %s", p)
		}
	}
	for _, p := range sorted(got) {
		if !want[p] {
			t.Errorf("the ClusterRole has more than it needs: %s", p)
		}
	}
}

// TestNobodyMayUpdate looks at every role of every rendering for what must never be there.
func TestNobodyMayUpdate(t *testing.T) {
	lease := permission{"coordination.k8s.io", "leases", "update", "freehold"}
	finalizers := permission{"toolhive.stacklok.dev", "mcpservers/finalizers", "update", ""}
	ownStatus := map[string]bool{"mcpservers/status": true}
	for _, config := range managers.Configs() {
		ownStatus[config.Resource+"/status"] = true
	}
	cases := []struct {
		name    string
		objects objects
		allowed []permission
	}{
		{"install.yaml", installed(t), []permission{lease}},
		{"install-namespaced.yaml", installedNamespaced(t), []permission{lease}},
		{
			"owner-references-permission", rendered(t, "owner-references-permission"),
			[]permission{lease, finalizers},
		},
		{
			"namespaced-owner-references-permission", rendered(t, "namespaced-owner-references-permission"),
			[]permission{lease, finalizers},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			updates := map[permission]bool{}
			for name, rules := range allRules(tc.objects) {
				if len(rules) == 0 {
					t.Errorf("%s has no rules", name)
				}
				for _, rule := range rules {
					if len(rule.NonResourceURLs) > 0 {
						t.Errorf("%s allows %v", name, rule.NonResourceURLs)
					}
				}
				for p := range permissionsOf(rules) {
					resource, _, _ := strings.Cut(p.resource, "/")
					switch {
					case p.group == "*" || strings.Contains(p.resource, "*") || p.verb == "*":
						t.Errorf("%s has a wildcard: %s", name, p)
					case resource == "secrets":
						t.Errorf("%s reaches Secrets: %s", name, p)
					case strings.HasSuffix(p.resource, "/status") && !ownStatus[p.resource]:
						t.Errorf("%s reaches a status that is its controller's to write: %s", name, p)
					case slices.Contains([]string{"escalate", "bind", "impersonate", "deletecollection"}, p.verb):
						t.Errorf("%s holds a verb it must not have: %s", name, p)
					case p.verb == "update":
						updates[p] = true
					}
				}
			}
			if got, want := sorted(updates), tc.allowed; !reflect.DeepEqual(got, want) {
				t.Errorf("the verb update is allowed for %v, want %v", got, want)
			}
		})
	}
}

// aggregated is what the label begins with that adds a ClusterRole to one of Kubernetes' own.
const aggregated = "rbac.authorization.k8s.io/aggregate-to-"

// TestUsersMayReadAndEdit shows that who may view or edit a namespace may do so with what the CRDs define, but for statuses.
func TestUsersMayReadAndEdit(t *testing.T) {
	all := installed(t)
	var resources []string
	for _, definition := range all.definitions {
		resource, _, _ := strings.Cut(definition.Name, ".")
		resources = append(resources, resource)
	}
	slices.Sort(resources)
	reading, writing := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete", "deletecollection"}
	want := map[string][]string{"view": reading, "edit": slices.Concat(reading, writing), "admin": slices.Concat(reading, writing)}
	got := map[string][]string{}
	for _, role := range all.usersRoles {
		rule := one(t, role.Rules)
		slices.Sort(rule.Resources)
		if diff := cmp.Diff([]string{"toolhive.stacklok.dev"}, rule.APIGroups) + cmp.Diff(resources, rule.Resources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role.Name, diff)
		}
		for label := range role.Labels {
			if to, ok := strings.CutPrefix(label, aggregated); ok {
				got[to] = append(got[to], rule.Verbs...)
			}
		}
	}
	for to := range want {
		slices.Sort(want[to])
		slices.Sort(got[to])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
	if n := len(installedNamespaced(t).usersRoles); n > 0 {
		t.Errorf("the installation for a few namespaces has %d ClusterRoles", n)
	}
}

// TestNamespacedOperatorStaysInItsNamespaces shows that the overlay grants the same, but only there.
func TestNamespacedOperatorStaysInItsNamespaces(t *testing.T) {
	whole, namespaced := installed(t), installedNamespaced(t)
	if n := len(namespaced.clusterRoles) + len(namespaced.clusterRoleBindings); n != 0 {
		t.Errorf("%d cluster-wide grants, want none", n)
	}
	watched := watchedNamespaces(one(t, namespaced.deployments))
	if len(watched) == 0 {
		t.Fatal("WATCH_NAMESPACE is not set")
	}
	rules := one(t, whole.clusterRoles).Rules
	granted := map[string]bool{}
	for _, role := range namespaced.roles {
		if role.Name != "freehold" {
			continue
		}
		granted[role.Namespace] = true
		if !reflect.DeepEqual(role.Rules, rules) {
			t.Errorf("the Role in %s is not the ClusterRole:\n%v\nwant\n%v", role.Namespace, role.Rules, rules)
		}
	}
	if got := slices.Sorted(maps.Keys(granted)); !slices.Equal(got, watched) {
		t.Errorf("rights in %v, but watching %v", got, watched)
	}
	if got := watchedNamespaces(one(t, whole.deployments)); len(got) != 0 {
		t.Errorf("the whole installation watches %v, want every namespace", got)
	}
}

// TestGrantsReachTheOperator shows that every binding leads from a role that exists to the account that the pods use.
func TestGrantsReachTheOperator(t *testing.T) {
	for name, all := range map[string]objects{"install.yaml": installed(t), "install-namespaced.yaml": installedNamespaced(t)} {
		account := one(t, all.serviceAccounts)
		pod := one(t, all.deployments)
		if pod.Namespace != account.Namespace || pod.Spec.Template.Spec.ServiceAccountName != account.Name {
			t.Errorf("%s: the pods run as %s in %s, but the account is %s in %s", name,
				pod.Spec.Template.Spec.ServiceAccountName, pod.Namespace, account.Name, account.Namespace)
		}
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
		unbound := map[string]bool{}
		for role := range allRules(all) {
			unbound[role] = true
		}
		for _, binding := range all.roleBindings {
			delete(unbound, binding.RoleRef.Kind+" "+binding.Namespace+"/"+binding.RoleRef.Name)
			if !reflect.DeepEqual(binding.Subjects, want) {
				t.Errorf("%s: RoleBinding %s binds %v, want %v", name, binding.Name, binding.Subjects, want)
			}
		}
		for _, binding := range all.clusterRoleBindings {
			delete(unbound, binding.RoleRef.Kind+" /"+binding.RoleRef.Name)
			if !reflect.DeepEqual(binding.Subjects, want) {
				t.Errorf("%s: ClusterRoleBinding %s binds %v, want %v", name, binding.Name, binding.Subjects, want)
			}
		}
		if len(unbound) > 0 {
			t.Errorf("%s: nobody holds %v", name, slices.Sorted(maps.Keys(unbound)))
		}
	}
}

// allRules returns the rules of every role, by "kind namespace/name".
func allRules(all objects) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range all.clusterRoles {
		rules["ClusterRole /"+role.Name] = role.Rules
	}
	for _, role := range all.roles {
		rules["Role "+role.Namespace+"/"+role.Name] = role.Rules
	}
	return rules
}

func sorted(permissions map[permission]bool) []permission {
	return slices.SortedFunc(maps.Keys(permissions), func(a, b permission) int {
		return strings.Compare(a.String(), b.String())
	})
}
