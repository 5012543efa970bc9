// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// declaredClasses reads the constants of type Class out of the source, so that one which is forgotten in Classes
// and in Policies alike is found too.
func declaredClasses(t *testing.T) map[apply.Class]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[apply.Class]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Class" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		declared[apply.Class(text)] = true
		return true
	})
	return declared
}

func TestEveryClassHasAPolicy(t *testing.T) {
	listed, rows := map[apply.Class]bool{}, map[apply.Class]bool{}
	for _, class := range apply.Classes() {
		if listed[class] {
			t.Errorf("%s is listed twice", class)
		}
		listed[class] = true
	}
	for class := range apply.Policies() {
		rows[class] = true
	}
	declared := declaredClasses(t)
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("Classes() (-declared +listed):\n%s", diff)
	}
	if diff := cmp.Diff(declared, rows); diff != "" {
		t.Errorf("Policies() (-declared +rows):\n%s", diff)
	}
}

func TestPoliciesAreComplete(t *testing.T) {
	// Values of labels in Prometheus are lower-case words.
	label := regexp.MustCompile(`^[a-z]+$`)
	outcomes := map[string]apply.Class{}
	for class, policy := range apply.Policies() {
		// Only a conflict is not retried after a wait.
		if waits := policy.FirstWait > 0 && policy.FirstWait <= apply.LongestWait; waits != (class != apply.ClassConflict) {
			t.Errorf("%s: the first wait is %s", class, policy.FirstWait)
		}
		if !label.MatchString(policy.Outcome) {
			t.Errorf("%s: outcome %q", class, policy.Outcome)
		}
		if before, ok := outcomes[policy.Outcome]; ok {
			t.Errorf("%s and %s have the outcome %q", class, before, policy.Outcome)
		}
		outcomes[policy.Outcome] = class
	}
}

func TestAnObjectRefReadsAsKubectlNamesTheObject(t *testing.T) {
	if got := webRef.String(); got != "deployment.apps/web" {
		t.Errorf("String() = %q", got)
	}
	service := apply.ObjectRef{}
	service.Kind.Kind, service.Name = "Service", "mcp-web"
	if got := service.String(); got != "service/mcp-web" {
		t.Errorf("String() = %q", got)
	}
}

func TestRefusalNamesWhoAndWhat(t *testing.T) {
	refusal := &apply.Refusal{Class: apply.ClassInvalid, Writer: "me", Object: webRef, Reason: "too long"}
	if got := refusal.Error(); got != "Invalid of deployment.apps/web by me: too long" {
		t.Errorf("Error() = %q", got)
	}
	refusal.Writer = ""
	if got := refusal.Error(); !strings.Contains(got, "deletion of deployment.apps/web") {
		t.Errorf("Error() of a delete = %q", got)
	}
}
