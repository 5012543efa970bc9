// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// TestRightsAreThoseOfTheManifests shows that docs/security.md has every right that the manifests give the operator, and no other.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	const (
		whole, election, reviewer = "ClusterRole freehold", "Role freehold-leader-election", "ClusterRole freehold-metrics-reviewer"
		overlays                  = "../../deploy/testdata/"
	)
	plain := rolesOf(t, "../../deploy/install-without-crd.yaml")
	want := map[string][]string{
		"":                         plain[whole],
		"freehold-leader-election": plain[election],
		"secure-metrics":           rolesOf(t, overlays+"secure-metrics/rendered.yaml")[reviewer],
		"owner-references-permission": slices.DeleteFunc(rolesOf(t, overlays+"owner-references-permission/rendered.yaml")[whole],
			func(p string) bool { return slices.Contains(plain[whole], p) }),
	}
	got := map[string][]string{"": permissions(t, clusterRights(inventory.Children(), managers.Configs()))}
	for where, rights := range otherRights() {
		for part := range want {
			if part != "" && strings.Contains(where, part) {
				got[part] = permissions(t, rights)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-of the manifests +of the page):\n%s", diff)
	}
	for part, rights := range want {
		if len(rights) == 0 {
			t.Errorf("%q: the manifests have no rights", part)
		}
	}
	// The rest belongs to users, not to the operator.
	for name := range plain {
		if !slices.Contains([]string{whole, election, "ClusterRole freehold-view", "ClusterRole freehold-edit"}, name) {
			t.Errorf("the page does not know %s", name)
		}
	}
}

// TestAuditAdviceKnowsWhatIsCreated shows that docs/security.md names what the operator creates by other requests than applies, which
// have no field manager: who reads the audit log by it takes everything else for an attack.
func TestAuditAdviceKnowsWhatIsCreated(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, advice, _ := strings.Cut(strings.Join(strings.Fields(string(page)), " "), "a create without a field manager of anything but ")
	advice, _, ended := strings.Cut(advice, ";")
	if !ended {
		t.Fatal("the page does not say what the operator creates without a field manager")
	}
	var got []string
	for _, match := range regexp.MustCompile(`\ban? (\w+)`).FindAllStringSubmatch(advice, -1) {
		got = append(got, strings.ToLower(match[1]))
	}
	slices.Sort(got)

	children := map[string]bool{}
	for _, child := range inventory.Children() {
		children[child.Resource] = true
	}
	held := clusterRights(inventory.Children(), managers.Configs())
	for _, rights := range otherRights() {
		held = append(held, rights...)
	}
	var want []string
	for _, r := range held {
		if !slices.Contains(r.verbs, "create") || strings.Contains(r.why, "Never used") {
			continue
		}
		for _, resource := range r.resources {
			if !children[resource] {
				want = append(want, strings.TrimSuffix(path.Base(resource), "s"))
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("creates without a field manager (-of the rights +of the page):\n%s", diff)
	}
}

// permissions are rights as single verbs on single resources, sorted. Each has its reason, and is there once.
func permissions(t *testing.T, rights []right) (all []string) {
	t.Helper()
	for _, r := range rights {
		if r.why == "" {
			t.Errorf("%v has no reason", r)
		}
		all = append(all, flat([]string{r.group}, r.resources, r.verbs, r.names)...)
	}
	slices.Sort(all)
	if n := len(all); n != len(slices.Compact(slices.Clone(all))) {
		t.Errorf("a right is there twice: %v", all)
	}
	return all
}

// rolesOf returns the permissions of each role of a manifest, sorted, by its kind and name.
func rolesOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole // A Role has the same fields.
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		rules := map[string]bool{}
		for _, rule := range role.Rules {
			for _, p := range flat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
				rules[p] = true
			}
		}
		found[role.Kind+" "+role.Name] = rules
	}
	roles := map[string][]string{}
	for name, rules := range found {
		roles[name] = slices.Sorted(maps.Keys(rules))
	}
	return roles
}

func flat(groups, resources, verbs, names []string) (all []string) {
	for _, group := range groups {
		for _, resource := range resources {
			for _, verb := range verbs {
				all = append(all, fmt.Sprintf("%s %s.%s %s", verb, resource, group, strings.Join(names, ",")))
			}
		}
	}
	return all
}

func TestEachRightIsARow(t *testing.T) {
	want := strings.Join([]string{
		"| API group | Resources | Verbs | Why |",
		"|---|---|---|---|",
		"| core | pods, services | get, list | To see. |",
		"| g | leases named one | update | To hold. |",
		"| g | things: 2 of them, by name | watch | To wait. |",
		"",
	}, "\n")
	rights := []right{
		{"", []string{"pods", "services"}, []string{"get", "list"}, nil, "To see."},
		{"g", []string{"leases"}, []string{"update"}, []string{"one"}, "To hold."},
		{"g", []string{"things"}, []string{"watch"}, []string{"one", "two"}, "To wait."},
	}
	if diff := cmp.Diff(want, rightsTable(rights)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got := madeAs(rows, "", "services", "pods"); got != "Children of the MCPServer NAME: `NAME`, `mcp-NAME`." {
		t.Errorf("got %s", got)
	}
	want = strings.Join([]string{
		"| Where | API group | Resources | Verbs | Why |",
		"|---|---|---|---|---|",
		"| here | core | pods | get | To see. |",
		"| there | g | leases | update | To hold. |",
		"",
	}, "\n")
	others := map[string][]right{
		"there": {{"g", []string{"leases"}, []string{"update"}, nil, "To hold."}},
		"here":  {{"", []string{"pods"}, []string{"get"}, nil, "To see."}},
	}
	if diff := cmp.Diff(want, otherRightsTable(others)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
