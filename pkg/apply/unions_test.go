// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
)

const (
	variable  = `.spec.template.spec.containers[name="web"].env[name="A"]`
	secretRef = variable + ".valueFrom.secretKeyRef"
)

// withVariable is an intent with an environment variable that has a value or, without one, a source.
func withVariable(value string) *configuration {
	config, env := web("a:1"), corev1ac.EnvVar().WithName("A")
	if value != "" {
		env.WithValue(value)
	} else {
		env.WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("ours").WithKey("a")))
	}
	config.Spec.Template.Spec.Containers[0].WithEnv(env)
	return config
}

// exclusive is the target of an intent with one environment variable.
func exclusive(to *target) {
	stamped(to)
	to.Unions = func(config *configuration, _ *deployment) []apply.Union {
		env := config.Spec.Template.Spec.Containers[0].Env
		switch {
		case len(env) == 0:
			return nil
		case env[0].Value != nil:
			return []apply.Union{{Path: variable, Set: "value", Beside: []string{"name"}}}
		}
		return []apply.Union{
			{Path: variable, Set: "valueFrom", Beside: []string{"name"}},
			{Path: variable + ".valueFrom", Set: "secretKeyRef"},
		}
	}
}

// withRivals is a cache that shows an object which the writer has made, on an API server that refuses a variable with two sources.
func withRivals(t *testing.T, value string) *cached {
	t.Helper()
	c := &cached{store: created(t, content, exclusive, withVariable(value))}
	c.validate = oneSource
	c.restart()
	c.settled(c.pass(withVariable(value), nil), apply.ActionNone)
	c.requests = nil
	return c
}

// oneSource refuses a variable with two sources, as an API server does.
func oneSource(d *deployment) error {
	for _, env := range d.Spec.Template.Spec.Containers[0].Env {
		if from := env.ValueFrom; from != nil && (env.Value != "" || from.SecretKeyRef != nil && from.ConfigMapKeyRef != nil) {
			return apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{
				field.Invalid(field.NewPath("spec", "template", "spec").Child("containers").Index(0).Child("env").Index(0).Child("valueFrom"), "",
					"may not be specified when `value` is not empty"),
			})
		}
	}
	return nil
}

// setSource gives the variable another source, as an edit does.
func (c *cached) setSource(manager string) {
	c.t.Helper()
	c.update(manager, func(d *deployment) {
		d.Spec.Template.Spec.Containers[0].Env[0] = corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}, Key: "a"},
		}}
		d.Generation++
	})
}

// expectRival fails unless an outcome is a conflict about a field to remove.
func (c *cached) expectRival(out apply.Outcome, path, owner string) {
	c.t.Helper()
	conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
	if !ok {
		c.t.Fatalf("%s with error %v, want a conflict", out.Action, out.Err)
	}
	if f := conflict.Fields[0]; len(conflict.Fields) != 1 || f.Path != path || !f.Removed || len(f.Owners) != 1 || f.Owners[0].Manager != owner {
		c.t.Errorf("the conflict is about %+v", conflict.Fields)
	}
}

func isSource(path fieldpath.Path) bool { return strings.HasPrefix(path.String(), variable) }

func (c *cached) variable() corev1.EnvVar { return c.stored.Spec.Template.Spec.Containers[0].Env[0] }

// A source of a variable that another manager has set beside the value of the intent is in conflict. The API server would refuse the
// two as invalid and name no manager.
func TestARivalOfAnotherManagerIsAConflict(t *testing.T) {
	for name, restarted := range map[string]bool{"seen": false, "not seen": true} {
		t.Run(name, func(t *testing.T) {
			conflicting := func() *cached {
				c := withRivals(t, "ours")
				c.setSource("kubectl-edit")
				if c.keep(); restarted {
					c.restart()
				}
				c.expectRival(c.pass(withVariable("ours"), nil), secretRef, "kubectl-edit")
				if restarted {
					c.expect("a refusal that is explained", "apply content", "get")
				} else {
					c.expect("a conflict that is known beforehand")
				}
				c.keep()
				c.expectRival(c.pass(withVariable("ours"), nil), secretRef, "kubectl-edit")
				c.expect("it stands")
				return c
			}
			taken := conflicting()
			taken.settled(taken.pass(withVariable("ours"), takeAll), apply.ActionApplied)
			taken.expect("it is taken", "edit ownership", "apply content")
			if diff := cmp.Diff(corev1.EnvVar{Name: "A", Value: "ours"}, taken.variable()); diff != "" {
				t.Errorf("the variable that was taken (-want +got):\n%s", diff)
			}
			taken.keep()
			taken.settled(taken.pass(withVariable("ours"), nil), apply.ActionNone)

			left := conflicting()
			yield := func(req *apply.Request) { req.Yield = isSource }
			if out := left.pass(withVariable("ours"), yield); out.Err != nil {
				t.Errorf("what is left to others is refused: %v", out.Err)
			}
			if left.variable().ValueFrom == nil {
				t.Errorf("what is left to others was changed: %+v", left.variable())
			}
		})
	}
}

// The same of a value that another manager shares, once the intent has a source instead.
func TestASharedRivalIsAConflict(t *testing.T) {
	c := withRivals(t, "same")
	c.update("kubectl-edit", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Env[0].Value = "other"; d.Generation++ })
	c.update("kubectl-edit", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Env[0].Value = "same"; d.Generation++ })
	c.keep()
	c.settled(c.pass(withVariable("same"), nil), apply.ActionApplied)
	c.keep()
	c.expectOwners(variable+".value", "content", "kubectl-edit")
	c.requests = nil
	c.expectRival(c.pass(withVariable(""), nil), variable+".value", "kubectl-edit")
	c.keep()
	c.settled(c.pass(withVariable(""), takeAll), apply.ActionApplied)
	if got := c.variable(); got.Value != "" || got.ValueFrom == nil {
		t.Errorf("the variable is %+v", got)
	}
}

func TestAnotherSourceIsARival(t *testing.T) {
	c := withRivals(t, "")
	c.update("kubectl-edit", func(d *deployment) {
		d.Spec.Template.Spec.Containers[0].Env[0].ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a"}}
		d.Generation++
	})
	c.keep()
	c.expectRival(c.pass(withVariable(""), nil), variable+".valueFrom.configMapKeyRef", "kubectl-edit")
	c.keep()
	c.settled(c.pass(withVariable(""), takeAll), apply.ActionApplied)
	if from := c.variable().ValueFrom; from == nil || from.SecretKeyRef == nil || from.ConfigMapKeyRef != nil {
		t.Errorf("the source is %+v", from)
	}
}

// A rival without an owner is removed, and one of the writer's own goes with its apply.
func TestARivalOfNobodyIsRemoved(t *testing.T) {
	c := withRivals(t, "ours")
	c.setSource("kubectl-edit")
	c.stored.ManagedFields = c.stored.ManagedFields[:1]
	c.restart()
	c.settled(c.pass(withVariable("ours"), nil), apply.ActionApplied)
	c.expect("it is claimed, and goes", "apply content", "get", "edit ownership", "apply content")
	if got := c.variable(); got.Value != "ours" || got.ValueFrom != nil {
		t.Errorf("the variable is %+v", got)
	}
	c.keep()
	c.settled(c.pass(withVariable(""), nil), apply.ActionApplied)
	c.expect("it is the writer's own", "apply content")
}

// What was written beside a rival that had to go first is known to be in place when the writer returns to it.
func TestWhatARivalGaveWayToIsInPlaceForAReturn(t *testing.T) {
	keeping := func(to *target) {
		exclusive(to)
		to.Keep = func(*configuration) any { return "what is owned" }
	}
	preserve := func(req *apply.Request) { req.Preserve = func(runtime.ApplyConfiguration, any) {} }
	c := &cached{store: created(t, content, keeping, withVariable("ours"))}
	c.validate = oneSource
	c.restart()
	c.setSource("kubectl-edit")
	c.stored.ManagedFields = c.stored.ManagedFields[:1]
	c.restart()
	c.settled(c.pass(withVariable("ours"), preserve), apply.ActionApplied)
	c.keep()
	c.refuse = func(string) error { return apierrors.NewInvalid(deploymentKind, "web", nil) }
	if out := c.pass(withVariable("another"), preserve); apply.ClassOf(out.Err) != apply.ClassInvalid {
		t.Fatalf("%s with error %v, want a refusal", out.Action, out.Err)
	}
	c.refuse, c.requests = nil, nil
	c.settled(c.pass(withVariable("ours"), preserve), apply.ActionNone)
	c.expect("it is in place")
}

// A rival that is of an earlier intent comes back with the writer's lost claim, and goes.
func TestARivalOfALostClaimGoes(t *testing.T) {
	c := withRivals(t, "ours")
	c.stored.ManagedFields = nil
	c.restart()
	c.settled(c.pass(withVariable(""), nil), apply.ActionApplied)
	if got := c.variable(); got.Value != "" || got.ValueFrom == nil {
		t.Errorf("the variable is %+v", got)
	}
}

func TestABodyThatIsInvalidWithoutARivalIsRefused(t *testing.T) {
	c := withRivals(t, "ours")
	c.validate = func(*deployment) error { return apierrors.NewInvalid(deploymentKind, "web", nil) }
	out := c.pass(withVariable("more"), nil)
	if apply.ClassOf(out.Err) != apply.ClassInvalid || out.Action != apply.ActionRefused || out.RetryAfter == 0 {
		t.Errorf("%s with error %v, again after %s", out.Action, out.Err, out.RetryAfter)
	}
	c.expect("it is looked at once", "apply content", "get")
	c.clock.SetTime(c.clock.Now().Add(out.RetryAfter))
	c.requests = nil
	c.pass(withVariable("more"), nil)
	c.expect("the next attempt looks no more", "apply content")
}
