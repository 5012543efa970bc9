// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// TestOracle: what an operator or the plugin must not do is a violation, and what it may do is none.
func TestOracle(t *testing.T) {
	const guard = `[{"op":"test","path":"/metadata/resourceVersion","value":"1"}]`
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const replicas, label = `{"f:spec":{"f:replicas":{}}}`, `{"f:metadata":{"f:labels":{"f:team":{}}}}`
	deployment := func(team string, entries ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
		d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ManagedFields: entries}}
		d.Labels = map[string]string{"team": team}
		return d
	}
	for name, c := range map[string]struct {
		client, verb, manager, body string
		old, obj                    *appsv1.Deployment
		want                        string
	}{
		"an edit of our own claims": {
			client: "operator-0", verb: "patch", manager: managers.Ownership, body: guard,
			old: deployment("a", entry("freehold-proxy", replicas), entry("gitops", label)), obj: deployment("a", entry("gitops", label)),
		},
		"a theft": {
			client: "operator-0", verb: "patch", manager: managers.Ownership, body: guard,
			old: deployment("a", entry("gitops", label)), obj: deployment("a"), want: "claims of gitops were taken",
		},
		"a theft by the plugin": {
			client: "plugin-0", verb: "patch", manager: managers.Plugin, body: guard,
			old: deployment("a", entry("gitops", label)), obj: deployment("a"), want: "claims of gitops were taken",
		},
		"an edit without a precondition": {
			client: "operator-0", verb: "patch", manager: managers.Ownership, body: "[]",
			old: deployment("a"), obj: deployment("a"), want: "without a precondition",
		},
		"an edit of more": {
			client: "plugin-0", verb: "patch", manager: managers.Plugin, body: guard,
			old: deployment("a"), obj: deployment("b"), want: "changed something else",
		},
		"a value of others": {
			client: "plugin-0", verb: "apply", manager: managers.Plugin, body: `{"metadata":{"resourceVersion":"1"}}`,
			old: deployment("a", entry("gitops", label)), obj: deployment("b", entry("gitops", label)), want: "values of others",
		},
		"a user": {
			client: "user", verb: "patch", manager: "kubectl-edit", body: "[]", old: deployment("a", entry("gitops", label)), obj: deployment("b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				r := &apiserver.Request{
					Client: c.client, Verb: c.verb, Kind: s.Server.KindOf("apps", "Deployment"), Namespace: "shop", Name: "web", Manager: c.manager,
					Body: []byte(c.body),
				}
				s.oracle.committed(r, watch.Modified, c.obj, c.old)
				found := s.oracle.violations
				if c.want == "" && len(found) > 0 || c.want != "" && !slices.ContainsFunc(found, func(v string) bool { return strings.Contains(v, c.want) }) {
					t.Errorf("the violations are %q, want %q", found, c.want)
				}
			})
		})
	}
}
