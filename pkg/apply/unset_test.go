// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

const rollingUpdate = ".spec.strategy.rollingUpdate"

// recreated is an intent with the strategy that cannot have the settings of the other one.
func recreated() *configuration {
	config := web("a:1")
	config.Spec.WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType))
	return config
}

func unsetRollingUpdate(req *apply.Request) { req.Unset = []string{rollingUpdate} }

// defaulted fills in what the API server does, for which it makes nobody the owner.
func defaulted(d *deployment) {
	one := intstr.FromInt32(1)
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &one},
	}
}

func TestWhatNobodyOwnsIsUnset(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	defaulted(s.stored)
	s.ends(s.sync(recreated(), unsetRollingUpdate), apply.ActionApplied, "",
		"Unset "+rollingUpdate+".maxSurge from \"\"", "Unset "+rollingUpdate+".maxUnavailable from \"\"")
	s.expect("what nobody owns is claimed, and goes", "edit ownership", "apply content")
	want := appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if diff := cmp.Diff(want, s.stored.Spec.Strategy); diff != "" {
		t.Errorf("strategy (-want +got):\n%s", diff)
	}
	s.ends(s.sync(recreated(), unsetRollingUpdate), apply.ActionNone, "")
	s.expect("there is nothing to unset any more")
}

// What is to go and somebody else owns is in conflict, until it is taken.
func TestAnUnsetOfWhatSomebodyOwnsIsAConflict(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.update("kubectl-edit", defaulted)
	out := s.sync(recreated(), unsetRollingUpdate)
	s.ends(out, apply.ActionRefused, apply.ClassConflict)
	s.expect("a conflict that is known beforehand")
	var conflict *apply.ConflictError
	if !errors.As(out.Err, &conflict) || len(conflict.Fields) != 2 || conflict.Fields[0].Path != rollingUpdate+".maxSurge" ||
		len(conflict.Fields[0].Owners) != 1 || conflict.Fields[0].Owners[0].Manager != "kubectl-edit" {
		t.Errorf("the conflict is %+v", conflict)
	}
	s.ends(s.sync(recreated(), unsetRollingUpdate), apply.ActionNone, apply.ClassConflict)
	s.expect("it stands")

	everything := func(req *apply.Request) {
		unsetRollingUpdate(req)
		req.Take = func(ownership.Owner, fieldpath.Path) bool { return true }
	}
	s.ends(s.sync(recreated(), everything), apply.ActionApplied, "",
		"Taken "+rollingUpdate+`.maxSurge from "kubectl-edit"`, "Taken "+rollingUpdate+`.maxUnavailable from "kubectl-edit"`,
		`Taken .spec.strategy.type from "kubectl-edit"`)
	s.expect("both members of the union", "edit ownership", "edit ownership", "apply content")
	if s.stored.Spec.Strategy.RollingUpdate != nil || s.stored.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("it was taken, and the strategy is %+v", s.stored.Spec.Strategy)
	}
}

// A conflict about a field to remove ends when the field is left to its owner, although the intent is the same as before. As long
// as it is left, the outcome says so.
func TestAConflictAboutAnUnsetEndsWhenTheFieldIsLeft(t *testing.T) {
	const paused = ".spec.paused"
	s := created(t, content, stamped, web("a:1"))
	s.update("kubectl-edit", func(d *deployment) { d.Spec.Paused = true })
	unset := func(req *apply.Request) { req.Unset = []string{paused} }
	leave := func(req *apply.Request) {
		unset(req)
		req.Yield = func(path fieldpath.Path) bool { return path.String() == paused }
	}
	refused := s.sync(web("a:2"), unset)
	s.ends(refused, apply.ActionRefused, apply.ClassConflict)
	if conflict, ok := errors.AsType[*apply.ConflictError](refused.Err); !ok || !conflict.Fields[0].Removed {
		t.Errorf("not told as a field to remove: %v", refused.Err)
	}
	s.expect("a conflict")
	s.ends(s.sync(web("a:2"), func(req *apply.Request) {
		unset(req)
		req.Yield = func(path fieldpath.Path) bool { return path.String() == number }
	}), apply.ActionNone, apply.ClassConflict)
	s.expect("something else is left to others")

	for i, want := range []apply.Action{apply.ActionApplied, apply.ActionNone, apply.ActionNone} {
		out := s.sync(web("a:2"), leave)
		s.ends(out, want, "")
		if left := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "paused")); !left.Equals(out.Left) {
			t.Errorf("pass %d: left is %v, want %v", i, out.Left, left)
		}
	}
	s.expect("the conflict is settled", "apply content")
	if s.expectOwners(paused, "kubectl-edit"); !s.stored.Spec.Paused {
		t.Error("what is left to others was removed")
	}
}
