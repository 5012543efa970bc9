// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"testing"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// withVariables is an intent with a number of environment variables.
func withVariables(n int) *configuration {
	config := web("a:1")
	for i := range n {
		config.Spec.Template.Spec.Containers[0].WithEnv(corev1ac.EnvVar().WithName(fmt.Sprintf("V%d", i)).WithValue("ours"))
	}
	return config
}

// valuesOnly is the target of such an intent: no variable has a source.
func valuesOnly(to *target) {
	stamped(to)
	to.Unions = func(config *configuration, _ *deployment) (all []apply.Union) {
		for _, env := range config.Spec.Template.Spec.Containers[0].Env {
			path := fmt.Sprintf(`.spec.template.spec.containers[name="web"].env[name=%q]`, *env.Name)
			all = append(all, apply.Union{Path: path, Set: "value", Beside: []string{"name"}})
		}
		return all
	}
}

// A conflict about thousands of fields costs as many times what one about a few does, and no more: who may write to a workload must not
// keep the operator's workers busy. Allocations stand for the work, as times would differ from run to run.
func TestManyContestedFieldsCostInProportion(t *testing.T) {
	cost := func(n int) float64 {
		c := &cached{store: created(t, content, valuesOnly, withVariables(n))}
		c.update("kubectl-edit", func(d *deployment) {
			for i := range d.Spec.Template.Spec.Containers[0].Env {
				d.Spec.Template.Spec.Containers[0].Env[i].Value = "theirs"
			}
			d.Generation++
		})
		return testing.AllocsPerRun(1, func() {
			c.restart()
			if conflict := c.contestedBy(withVariables(n), nil); len(conflict.Fields) != n {
				t.Fatalf("a conflict about %d fields, want %d", len(conflict.Fields), n)
			}
		})
	}
	const few, times = 50, 8
	if one, many := cost(few), cost(few*times); many > one*times*1.5 {
		t.Errorf("%.0f allocations with %d fields, and %.0f with %d", one, few, many, few*times)
	}
}
