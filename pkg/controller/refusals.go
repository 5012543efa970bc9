// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// isUnanswered reports whether a refusal says nothing about what was asked for: another answer may come without any change.
func isUnanswered(err error) bool {
	switch apply.ClassOf(err) {
	case apply.ClassMoved, apply.ClassTransient, apply.ClassForbidden:
		return true
	}
	return false
}

// isMomentary reports whether a refusal should be over when the write is made again, which is at once.
func isMomentary(err error) bool {
	class := apply.ClassOf(err)
	return !apply.IsReported(err) && (class == apply.ClassMoved || class == apply.ClassTransient)
}

// isDue reports whether a refusal keeps the spec from being carried out. One that has just begun does not, if the status reports the
// generation of the MCPServer already.
func isDue(server *v1beta1.MCPServer, err error) bool {
	return apply.IsReported(err) || server.Status.ObservedGeneration != server.Generation
}

// concernsPods reports whether pods are not as they should be because of a refusal.
func concernsPods(server *v1beta1.MCPServer, err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != managers.Deployment && refusal.Object.Kind != managers.StatefulSet {
		return false
	}
	if !isDue(server, err) {
		return false // The write lost a race or got no answer, and the spec is unchanged.
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}

// losesTrack reports whether a writer does not know for the moment whether its fields are contested: it lost a race, or got no answer.
// A write that stays refused is not waited for: nothing says how long an outage lasts.
func losesTrack(err error) bool {
	refusal, ok := errors.AsType[*apply.Refusal](err)
	return ok && refusal.Writer != "" && isMomentary(err)
}

// conflicts returns the conflicts among refusals.
func conflicts(refused []error) (found []*apply.ConflictError) {
	for _, err := range refused {
		if conflict, ok := errors.AsType[*apply.ConflictError](err); ok {
			found = append(found, conflict)
		}
	}
	return found
}

// endures reports whether a refusal does not go away by itself.
func endures(refusal error) bool { return !apply.Policies()[apply.ClassOf(refusal)].Passes }

// refusals turns refused writes into conditions. Delays are those that pass by themselves as a rule and have not so far.
// A refusal that has only just begun is left to logs and metrics. The condition of a write that is stored otherwise than sent is True if
// that binds no pod to another policy, process or address.
func refusals(v *observed.Snapshot, refused []error) (found, delays []status.Finding) {
	for _, err := range refused {
		refusal, ok := errors.AsType[*apply.Refusal](err)
		if !ok || !refusal.IsReported() {
			continue
		}
		passes := apply.Policies()[refusal.Class].Passes
		f := status.Finding{
			Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: refusalReasons[refusal.Class],
			Message: fmt.Sprintf("%s: %s", refusal.Object, refusal.Reason),
		}
		if passes {
			f.Message = delayed(refusal)
			delays = append(delays, f)
			continue
		}
		if refusal.Class == apply.ClassConflict || refusal.Class == apply.ClassForeign {
			f.Condition = v1beta1.ConditionFieldsOwned
		}
		if conflict, ok := errors.AsType[*apply.ConflictError](err); ok {
			f.Message = describe(v, conflict)
		}
		if refusal.Twin {
			f.Reason = v1beta1.ReasonSecondOperator
		}
		if refusal.Class == apply.ClassUndone {
			f.Message += ". To find these clients: " + show(refusal.Object, "yaml", "--show-managed-fields")
			if refusal.Writer == "" {
				f.Status = metav1.ConditionTrue // What is not wanted harms nobody.
			}
		}
		if altered, ok := errors.AsType[*apply.AlteredError](err); ok {
			f.Message += ": a mutating admission policy or webhook changes what Freehold writes. Change it if it should not. " +
				"Freehold writes the object again at least every " + longestWait
			if !slices.ContainsFunc(altered.Fields, func(field apply.AlteredField) bool { return render.Binds(v.Server, altered.Object.Kind, field.Path) }) {
				f.Status = metav1.ConditionTrue
			}
		}
		found = append(found, f)
	}
	return found, delays
}

// refusalReasons are the reasons of the conditions that report refused writes, one for each class.
var refusalReasons = map[apply.Class]string{
	apply.ClassConflict:  v1beta1.ReasonFieldManagerConflict,
	apply.ClassForeign:   v1beta1.ReasonObjectNotOurs,
	apply.ClassStale:     v1beta1.ReasonNewerSource,
	apply.ClassMoved:     v1beta1.ReasonObjectChanging,
	apply.ClassInvalid:   v1beta1.ReasonInvalid,
	apply.ClassTerminal:  v1beta1.ReasonUnappliable,
	apply.ClassForbidden: v1beta1.ReasonForbidden,
	apply.ClassGone:      v1beta1.ReasonObjectTerminating,
	apply.ClassAltered:   v1beta1.ReasonAltered,
	apply.ClassUndone:    v1beta1.ReasonUndone,
	apply.ClassTransient: v1beta1.ReasonRetrying,
}
