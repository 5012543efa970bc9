// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// addTwice gives a container a variable with one name twice, which the API server accepts of an update.
func addTwice(c *corev1.Container, name string) {
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "one"}, corev1.EnvVar{Name: name, Value: "two"})
}

// withSidecar is the object that withRivals makes, to which another manager has added a container with a variable that is set twice.
func withSidecar(t *testing.T) *cached {
	t.Helper()
	c := withRivals(t, "ours")
	c.update("injector", func(d *deployment) {
		sidecar := corev1.Container{Name: "sidecar"}
		addTwice(&sidecar, "TWICE")
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, sidecar)
		d.Generation++
	})
	c.keep()
	return c
}

// What another manager has set twice is read as it is, whatever the writer reads the object for.
func TestDuplicatesOfAnotherManagerAreReadAsTheyAre(t *testing.T) {
	t.Run("an edit while something is left to others", func(t *testing.T) {
		c := withSidecar(t)
		yield := func(req *apply.Request) { req.Yield = leaving(".spec.strategy") }
		if out := c.pass(withVariable("ours"), yield); out.Err != nil {
			t.Fatal(out.Err)
		}
		c.keep()
		c.settled(c.pass(withVariable("another"), yield), apply.ActionApplied)
	})
	t.Run("a lost claim", func(t *testing.T) {
		c := withSidecar(t)
		c.stored.ManagedFields = nil
		c.restart()
		c.settled(c.pass(withVariable("ours"), nil), apply.ActionApplied)
		c.expectOwners(variable+".value", "content")
	})
	t.Run("a conflict, and taking it", func(t *testing.T) {
		c := withSidecar(t)
		c.setSource("kubectl-edit")
		c.keep()
		c.expectRival(c.pass(withVariable("ours"), nil), secretRef, "kubectl-edit")
		c.keep()
		c.settled(c.pass(withVariable("ours"), takeAll), apply.ActionApplied)
	})
	t.Run("of the writer's own variable", func(t *testing.T) {
		c := withRivals(t, "ours")
		c.update("kubectl-edit", func(d *deployment) { addTwice(&d.Spec.Template.Spec.Containers[0], "A"); d.Generation++ })
		c.restart()
		if out := c.pass(withVariable("ours"), nil); apply.ClassOf(out.Err) == apply.ClassTerminal {
			t.Error(out.Err)
		}
	})
}
