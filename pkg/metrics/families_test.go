// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// declared reads the constants of a type out of a source file, so that one which no list names is found.
func declared(t *testing.T, file, typeName string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != typeName {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, strings.ToLower(value))
		return true
	})
	slices.Sort(values)
	return values
}

func label(t *testing.T, metric, name string) []string {
	t.Helper()
	for _, l := range family(metric).Labels {
		if l.Name == name {
			return l.Values
		}
	}
	t.Fatalf("%s has no label %s", metric, name)
	return nil
}

func TestClosedSetsAreComplete(t *testing.T) {
	if diff := cmp.Diff(declared(t, "../apply/outcome.go", "Cause"), label(t, Claims, "cause")); diff != "" {
		t.Errorf("causes (-declared +listed):\n%s", diff)
	}
	if diff := cmp.Diff(declared(t, "../rollout/state.go", "Phase"), label(t, Rollouts, "phase")); diff != "" {
		t.Errorf("phases of rollouts (-declared +listed):\n%s", diff)
	}
	if diff := cmp.Diff(declared(t, "../controller/rolloutmetrics.go", "Tier"), label(t, Rollouts, "tier")); diff != "" {
		t.Errorf("tiers (-declared +listed):\n%s", diff)
	}
	if diff := cmp.Diff(declared(t, "../fieldmanager/managers/classes.go", "ManagerClass"), label(t, Conflicts, "manager_class")); diff != "" {
		t.Errorf("classes of managers (-declared +listed):\n%s", diff)
	}
	// Every action has an outcome of its own, unless it is a refusal, whose classes have one each; held is a refusal
	// that sent nothing.
	listed := label(t, Writes, "outcome")
	if got, want := len(listed), len(apply.Classes())+len(declared(t, "../apply/outcome.go", "Action")); got != want {
		t.Errorf("%d outcomes %v, want %d", got, listed, want)
	}
	for _, f := range Families() {
		for _, l := range f.Labels {
			if len(slices.Compact(slices.Sorted(slices.Values(l.Values)))) != len(l.Values) {
				t.Errorf("%s: values of %s are not all different: %v", f.Name, l.Name, l.Values)
			}
		}
	}
}

// Whatever is observed has the type, the help and the labels that the documentation is made from, and their values are
// in the closed sets.
func TestFamiliesAreWhatIsTold(t *testing.T) {
	observer := NewOutcomes()
	t.Cleanup(func() { SetSource(nil) })
	writes.Reset()
	claims.Reset()
	for _, w := range managers.Registry().Writers() {
		if w.Name == managers.Ownership {
			continue
		}
		out := apply.Outcome{Writer: w.Name, Object: apply.ObjectRef{Kind: w.Kind}}
		for _, action := range []apply.Action{apply.ActionNone, apply.ActionCreated, apply.ActionApplied, apply.ActionClaimed, apply.ActionDeleted} {
			out.Action = action
			observer.Observe(out)
		}
		for _, cause := range apply.Causes() {
			out.Claims = append(out.Claims, apply.ClaimChange{Cause: cause})
		}
		for _, class := range apply.Classes() {
			out.Action, out.Err = apply.ActionRefused, &apply.Refusal{Class: class}
			observer.Observe(out)
			out.Action = apply.ActionNone
			observer.Observe(out)
		}
	}
	SetSource(source{
		conflicts: func() []*apply.ConflictError {
			return []*apply.ConflictError{{
				Refusal: apply.Refusal{Writer: managers.Proxy, Object: apply.ObjectRef{Kind: managers.Deployment}},
				Fields:  []apply.FieldConflict{{Path: ".a"}},
			}}
		},
		rollouts:  []controller.Rollout{{Tier: controller.TierProxy, State: rollout.State{Phase: rollout.Stuck, Reason: "NotReady"}}},
		queues:    []controller.Queue{{Name: "mcpserver"}},
		failing:   []controller.FailingWatch{{Kind: "Pod", Namespace: "a"}},
		takeovers: turns.Counts{Active: 1}, onDelete: []types.NamespacedName{{Namespace: "a", Name: "b"}},
	})

	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, got := range families {
		if !strings.HasPrefix(got.GetName(), prefix+"_") {
			continue
		}
		told[got.GetName()] = true
		if !slices.ContainsFunc(Families(), func(f Family) bool { return f.Name == got.GetName() }) {
			t.Errorf("%s is not in Families", got.GetName())
			continue
		}
		want := family(got.GetName())
		if typ := strings.ToLower(got.GetType().String()); typ != string(want.Type) {
			t.Errorf("%s is a %s, want %s", want.Name, typ, want.Type)
		}
		if help := "[" + string(want.Stability) + "] " + want.Help; got.GetHelp() != help {
			t.Errorf("%s says %q, want %q", want.Name, got.GetHelp(), help)
		}
		for _, m := range got.GetMetric() {
			values := map[string]string{}
			for _, pair := range m.GetLabel() {
				values[pair.GetName()] = pair.GetValue()
			}
			for _, l := range want.Labels {
				if value, ok := values[l.Name]; !ok || l.Values != nil && !slices.Contains(l.Values, value) {
					t.Errorf("%s has %s=%q, which is not one of %v", want.Name, l.Name, value, l.Values)
				}
				delete(values, l.Name)
			}
			if len(values) > 0 {
				t.Errorf("%s has labels more: %v", want.Name, values)
			}
		}
	}
	if len(told) != len(Families()) {
		t.Errorf("told are %v, want all of Families", told)
	}
}

// The counters of refusals are there before the first refusal, and those alone.
func TestRefusalsBeginAtZero(t *testing.T) {
	policies := apply.Policies()
	NewOutcomes()
	writes.Reset()
	startRefusals(policies)
	refusals := map[string]bool{}
	for _, policy := range policies {
		refusals[policy.Outcome] = true
	}
	zero := map[string]int{}
	for labels, value := range gathered(t, Writes, "outcome") {
		if value != 0 || !refusals[labels[2]] {
			t.Errorf("%v is %v", labels, value)
		}
		zero[labels[0]]++
	}
	for _, writer := range label(t, Writes, "writer") {
		if zero[writer] == 0 || zero[writer]%len(policies) != 0 {
			t.Errorf("%s has %d counters of refusals, want %d for each kind", writer, zero[writer], len(policies))
		}
	}
}
