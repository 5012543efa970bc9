// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

// resolution is how an MCPServer's author settles conflicts: by taking fields, once, or by leaving them to others.
type resolution struct {
	previous []metav1.Condition
	// told is what the status tells.
	told ownStatus

	take *request.Request
	// record is what was recorded of a request to take. It is that of another request, or empty, until begun.
	record request.Record
	begun  bool
	// undecided is set when the request matches nothing so far, and an object is not written that it may match.
	undecided bool
	// done reports whether this process has taken a field for the request already.
	done func(object apply.ObjectRef, path string) bool
	// held are the fields of the status that others own and our writer does not, once the request has begun.
	held []apply.FieldConflict
	// refused is set when fields of the status could not be taken. Their owners may then share them with our writer.
	refused bool

	yield *request.Request
	// yields has those of its entries that stand for a field that Freehold would set.
	yields map[request.Selector]bool
	// unyielded is set when a write of fields that the request yields is refused: the writer may still own them.
	unyielded bool
}

func newResolution(server *v1beta1.MCPServer, state *serverState) *resolution {
	r := &resolution{
		previous: server.Status.Conditions,
		told:     state.told,
		take:     request.New(server.Annotations[v1beta1.AnnotationTake]),
		record:   request.ReadRecord(server.Annotations[v1beta1.AnnotationTakeRecord]),
		yield:    request.New(server.Annotations[v1beta1.AnnotationYield]),
	}
	r.begun = !r.take.Empty() && r.record.IsOf(r.take.Text) && !state.taken.withdrawn
	r.done = func(object apply.ObjectRef, path string) bool { return state.taken.has(r.record.Request, object, path) }
	r.yields = map[request.Selector]bool{}
	return r
}

// takes reports whether a manager's claim on an object, as it stands, is one that the request ends.
func (r *resolution) takes(object apply.ObjectRef, from ownership.Owner) bool {
	return r.begun && len(r.record.Claims) > 0 && r.record.Has(request.ClaimID(object, from))
}

// takesFrom reports whether it was asked to take everything from a manager of an object.
func (r *resolution) takesFrom(object apply.ObjectRef, from ownership.Owner) bool {
	return r.take.Manager(object, from.Manager) && r.takes(object, from)
}

// complete adds to a write what the author asks for.
func (r *resolution) complete(req *apply.Request) {
	object := req.Object
	if req.Take != nil {
		return
	}
	req.Yield = r.yield.Yields(object, req.Yield)
	if r.begun && len(r.record.Claims) > 0 {
		req.Take = func(from ownership.Owner, path fieldpath.Path) bool {
			return r.take.Owned(object, path, from) && r.takes(object, from) && !r.done(object, path.String())
		}
	}
}

// note remembers the entries that stand for fields left to others. A writer gives up these fields before its apply can meet a
// conflict; any other refusal may be that of the edit which gives them up.
func (r *resolution) note(out apply.Outcome) {
	if out.Left == nil || !r.yield.Concerns(out.Object) {
		return
	}
	given := out.Err == nil || apply.ClassOf(out.Err) == apply.ClassConflict
	out.Left.Iterate(func(path fieldpath.Path) {
		for _, s := range r.yield.Selecting(out.Object, path) {
			r.yields[s] = r.yields[s] || given
			r.unyielded = r.unyielded || !given
		}
	})
}

// findings returns the conditions about the requests. complete means that every object was there and could be looked at;
// until then the earlier report still stands. contested are the conflicts that stand as far as this pass knows, and unanswered
// means that a write has just lost a race or got no answer.
func (r *resolution) findings(complete bool, contested []*apply.ConflictError, unanswered bool) []status.Finding {
	return append(r.aboutTaking(contested, unanswered), r.aboutYielding(complete)...)
}

func (r *resolution) aboutTaking(contested []*apply.ConflictError, unanswered bool) []status.Finding {
	f := status.Finding{Condition: v1beta1.ConditionFieldsTaken, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonTaken}
	answer := request.AnswerTo(v1beta1.AnnotationTake, r.take.Text)
	switch {
	case r.take.Empty() && r.record.Request == "":
		return nil
	case r.undecided:
		f.Status, f.Reason = metav1.ConditionUnknown, v1beta1.ReasonTaking
		f.Message = "no contested field fits so far, and some objects are not written yet; Freehold carries out the request " +
			"when it knows who owns their fields. The conditions Applied and Ready report what it waits for"
	case r.take.Empty(), !r.begun:
		// The request is to be recorded, or its record forgotten, first.
		return r.unchanged(v1beta1.ConditionFieldsTaken)
	case len(r.record.Claims) == 0:
		f.Status, f.Reason = metav1.ConditionFalse, v1beta1.ReasonNothingToTake
		f.Message = "no contested field fits; to ask again, put a comma in front of the annotation's value"
	case r.refused, unanswered && !r.answered(), slices.ContainsFunc(contested, r.standing):
		// Not all that is recorded is taken yet.
		f.Status, f.Reason = metav1.ConditionUnknown, v1beta1.ReasonTaking
		f.Message = "taking " + r.record.Took
	case r.missed(), !r.answered() && slices.ContainsFunc(contested, r.claimedAgain):
		f.Status, f.Reason = metav1.ConditionFalse, v1beta1.ReasonClaimedAgain
		f.Message = claimedAgain + r.record.Took
	default:
		f.Message = "took " + r.record.Took
	}
	f = withProblems(f, r.take)
	f.Message = answer + f.Message
	return []status.Finding{f}
}

// claimedAgain begins what is reported where not all was taken that the request is about.
const claimedAgain = "fields were claimed again before they could be taken, and stay as they are; to ask again, put a comma in front of " +
	"the annotation's value. The request was to take "

// answered reports whether an earlier status tells how the request has ended. A status of the operator before this one tells the end of
// the recorded request.
func (r *resolution) answered() bool {
	if r.told.known {
		return r.told.take == r.record.Request
	}
	before := meta.FindStatusCondition(r.previous, v1beta1.ConditionFieldsTaken)
	return before != nil && before.Status != metav1.ConditionUnknown
}

// missed reports whether an earlier status says that another manager claimed a field before it could be taken. Later changes of
// ownership do not change that answer.
func (r *resolution) missed() bool {
	if r.told.known {
		return r.answered() && r.told.missed
	}
	before := meta.FindStatusCondition(r.previous, v1beta1.ConditionFieldsTaken)
	return before != nil && before.Reason == v1beta1.ReasonClaimedAgain
}

// standing reports whether a conflict is about a field that the request takes and this process has not taken.
func (r *resolution) standing(conflict *apply.ConflictError) bool { return r.fits(conflict, true) }

// claimedAgain reports whether a conflict is about a field that the request selects and this process has not taken, and that has been
// claimed since the request was recorded.
func (r *resolution) claimedAgain(conflict *apply.ConflictError) bool { return r.fits(conflict, false) }

// fits reports whether the request selects a field of a conflict that this process has not taken, and whose claim is recorded or not.
func (r *resolution) fits(conflict *apply.ConflictError, recorded bool) bool {
	return slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return !r.done(conflict.Object, f.Path) && slices.ContainsFunc(f.Owners, func(o ownership.Owner) bool {
			return r.takes(conflict.Object, o) == recorded && r.take.Contested(conflict.Object, f.Path, o)
		})
	})
}

// withProblems adds to a finding the entries that are not followed.
func withProblems(f status.Finding, asked *request.Request) status.Finding {
	if len(asked.Malformed) > 0 {
		f.Status, f.Reason = metav1.ConditionFalse, v1beta1.ReasonMalformed
		f.Message = fmt.Sprintf("these entries are neither fields nor field managers: %s; %s", status.List(asked.Malformed), f.Message)
	}
	if asked.Cut {
		f.Status, f.Reason = metav1.ConditionFalse, v1beta1.ReasonTooManyEntries
		f.Message = fmt.Sprintf("only %d entries, and %d bytes of them, are read, so name what is above the fields or a field manager; %s",
			request.MaxEntries, request.MaxBytes, f.Message)
	}
	return f
}

func (r *resolution) aboutYielding(complete bool) []status.Finding {
	if r.yield.Empty() {
		return nil
	}
	var left, refused []string
	for _, s := range r.yield.Entries {
		if r.yields[s] {
			left = append(left, s.String())
		} else {
			refused = append(refused, s.String())
		}
	}
	if r.unyielded || !complete && len(refused) > 0 {
		return r.unchanged(v1beta1.ConditionFieldsYielded) // An object that is not written yet may have the field.
	}
	f := status.Finding{
		Condition: v1beta1.ConditionFieldsYielded, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonYielded,
		Message: "left to others: " + status.List(left),
	}
	if len(refused) > 0 {
		f.Status, f.Reason = metav1.ConditionFalse, v1beta1.ReasonNotYieldable
		f.Message = fmt.Sprintf("%s: no field that Freehold sets and can leave to others. It can leave those of "+
			"Deployments, StatefulSets and Services, but for owner references, selectors, the label toolhive, its own annotations, and what makes the "+
			"proxy read its RunConfig", status.List(refused))
	}
	f = withProblems(f, r.yield)
	f.Message = request.AnswerTo(v1beta1.AnnotationYield, r.yield.Text) + f.Message
	return []status.Finding{f}
}

func (r *resolution) unchanged(conditionType string) []status.Finding {
	if c := meta.FindStatusCondition(r.previous, conditionType); c != nil {
		return []status.Finding{{Condition: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}
	}
	return nil
}
