// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

func findings(problems []render.Problem, conditionStatus metav1.ConditionStatus) []status.Finding {
	found := make([]status.Finding, 0, len(problems))
	for _, p := range problems {
		found = append(found, status.Finding{
			Condition: p.Condition, Status: conditionStatus, Reason: p.Reason, Message: p.Message,
		})
	}
	return found
}

// notices are conditions that tell of something that works, but otherwise than it was written.
func notices(problems []render.Problem) []status.Finding {
	found := findings(problems, metav1.ConditionTrue)
	for i := range found {
		if found[i].Condition == v1beta1.ConditionGroupRefValidated {
			found[i].Status = metav1.ConditionUnknown
		}
	}
	return found
}

// refusals turns refused writes of children into conditions. Refusals that pass by themselves, and those of
// the MCPServer itself, which its status could not tell anyway, are left to logs and metrics.
func (p *pass) refusals() []status.Finding {
	var found []status.Finding
	for _, err := range p.refused {
		var refusal *apply.Refusal
		if !errors.As(err, &refusal) {
			continue
		}
		reason := apply.Policies()[refusal.Class].Reason
		if reason == "" {
			continue
		}
		f := status.Finding{
			Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason,
			Message: fmt.Sprintf("%s: %s", refusal.Object, refusal.Reason),
		}
		if refusal.Class == apply.ClassConflict || refusal.Class == apply.ClassForeign {
			f.Condition = v1beta1.ConditionFieldsOwned
		}
		if conflict, ok := errors.AsType[*apply.ConflictError](err); ok {
			f.Message = describe(conflict)
		}
		found = append(found, f)
	}
	return found
}

// describe tells a conflict in one line: the first contested field, who holds it, and the way out.
func describe(c *apply.ConflictError) string {
	first := c.Fields[0]
	holder := "another field manager"
	if len(first.Owners) > 0 {
		holder = "field manager " + first.Owners[0].String()
	}
	more := ""
	if n := len(c.Fields) - 1; n > 0 {
		more = fmt.Sprintf(" (+%d more fields)", n)
	}
	return fmt.Sprintf("%s holds %s of %s%s, which %s wants to have another value. "+
		"Either make that manager give the field up, or make the MCPServer ask for the same value.",
		holder, first.Path, c.Object, more, c.Writer)
}
