// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// claim is a manager's part in an object, by which it is found in managedFields.
type claim struct {
	manager     string
	operation   metav1.ManagedFieldsOperationType
	subresource string
}

func applied(manager string) claim { return claim{manager, metav1.ManagedFieldsOperationApply, ""} }

func appliedStatus(manager string) claim {
	return claim{manager, metav1.ManagedFieldsOperationApply, "status"}
}

// claimsOf returns the fields of every manager of an object but the operator's.
func claimsOf(t *testing.T, obj metav1.Object) map[claim][]string {
	t.Helper()
	claims := map[claim][]string{}
	eachEntry(t, obj, func(c claim, fields *fieldpath.Set) {
		if !managers.Registry().Knows(c.manager) {
			fields.Iterate(func(path fieldpath.Path) { claims[c] = append(claims[c], path.String()) })
			slices.Sort(claims[c])
		}
	})
	return claims
}

func eachEntry(t *testing.T, obj metav1.Object, do func(claim, *fieldpath.Set)) {
	t.Helper()
	entries := obj.GetManagedFields()
	for i := range entries {
		fields, err := ownership.Fields(&entries[i])
		if err != nil {
			t.Fatal(err)
		}
		do(claim{entries[i].Manager, entries[i].Operation, entries[i].Subresource}, fields)
	}
}

// checkClaims compares what all managers but the operator's own with what they should.
func checkClaims(t *testing.T, obj metav1.Object, want map[claim][]string) {
	t.Helper()
	if diff := cmp.Diff(want, claimsOf(t, obj)); diff != "" {
		t.Errorf("claims on %s (-want +got):\n%s", obj.GetName(), diff)
	}
}

// checkOperatorBeside proves that the operator works on the MCPServer and leaves the others' fields alone: none of its
// managers owns anything of the spec or the condition, and no write since the mark has named them.
func checkOperatorBeside(t *testing.T, ns *harness.Namespace, since audit.Mark, obj metav1.Object, condition string) {
	t.Helper()
	owns := 0
	eachEntry(t, obj, func(c claim, fields *fieldpath.Set) {
		if !managers.Registry().Knows(c.manager) {
			return
		}
		fields.Iterate(func(path fieldpath.Path) {
			owns++
			if text := path.String(); strings.HasPrefix(text, ".spec") || strings.Contains(text, condition) {
				t.Errorf("%s owns %s", c.manager, text)
			}
		})
	})
	if owns == 0 {
		t.Error("the operator owns nothing of the MCPServer: has it worked on it at all?")
	}
	wrote := 0
	for _, e := range ns.Writes(t, since) {
		if e.Resource != "mcpservers" || e.Name != obj.GetName() {
			continue
		}
		wrote++
		var body map[string]json.RawMessage
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Errorf("%v is no apply: %v", e, err)
		}
		if _, named := body["spec"]; named || strings.Contains(string(e.Body), condition) {
			t.Errorf("the operator has written what is others': %v\n%s", e, e.Body)
		}
	}
	if wrote == 0 {
		t.Error("the operator has written nothing to the MCPServer")
	}
}
