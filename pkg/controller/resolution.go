// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

// Reasons of the conditions that tell what became of a request to take or to yield.
const (
	ReasonTaken         = "Taken"
	ReasonTaking        = "Taking"
	ReasonNothingToTake = "NothingToTake"
	ReasonYielded       = "Yielded"
	ReasonNotYieldable  = "NotYieldable"
)

// resolution is how an MCPServer's author settles conflicts: by taking fields, once, or by leaving them to others.
type resolution struct {
	previous []metav1.Condition

	takeRequest string
	take        []request.Selector
	taken       []string

	yield []request.Selector
	// yields tells, for each of them, whether it stands for a field that Freehold would set.
	yields []bool
}

func newResolution(server *v1beta1.MCPServer) *resolution {
	r := &resolution{previous: server.Status.Conditions, takeRequest: server.Annotations[vocabulary.Take]}
	if r.takeRequest != "" && !r.spent() {
		r.take = request.Read(r.takeRequest)
		if before := r.answered(); before != nil {
			r.taken = []string{strings.TrimPrefix(before.Message, r.answerTo()+tookPrefix)}
		}
	}
	r.yield = request.Read(server.Annotations[vocabulary.Yield])
	r.yields = make([]bool, len(r.yield))
	return r
}

// spent tells whether the request to take was carried out. The condition that tells the user is the record: it outlives
// the process, and it goes when the annotation goes.
func (r *resolution) spent() bool {
	before := r.answered()
	return before != nil && before.Reason != ReasonTaking
}

// answered is the condition that tells of the present request to take; nil when there is none yet.
func (r *resolution) answered() *metav1.Condition {
	before := meta.FindStatusCondition(r.previous, v1beta1.ConditionFieldsTaken)
	if before == nil || !strings.HasPrefix(before.Message, r.answerTo()) {
		return nil
	}
	return before
}

// tookPrefix comes before what was taken.
const tookPrefix = "took "

// answerTo begins the message about the request to take, so that it is told which one it is about.
func (r *resolution) answerTo() string { return request.AnswerTo(r.takeRequest) }

// complete adds to a request for a child what the author asks for.
func (r *resolution) complete(req *apply.Request) {
	object := req.Object
	if len(r.yield) > 0 && req.Take == nil {
		given := req.Yield
		req.Yield = func(path fieldpath.Path) bool { return given != nil && given(path) || r.yielded(object, path) }
	}
	if len(r.take) > 0 && req.Take == nil {
		req.Take = func(from ownership.Owner, path fieldpath.Path) bool {
			return slices.ContainsFunc(r.take, func(s request.Selector) bool { return s.Owned(object, path, from) })
		}
	}
}

func (r *resolution) yielded(object apply.ObjectRef, path fieldpath.Path) bool {
	return request.Yieldable(object, path) &&
		slices.ContainsFunc(r.yield, func(s request.Selector) bool { return s.Field(object, path) })
}

// takesFrom tells whether it was asked to take everything from a manager of an object.
func (r *resolution) takesFrom(object apply.ObjectRef, manager string) bool {
	return slices.ContainsFunc(r.take, func(s request.Selector) bool {
		return s.Manager == manager && (s.Object == "" || s.Object == object.String())
	})
}

// note keeps in mind what was taken, and what is left to others.
func (r *resolution) note(out apply.Outcome) {
	for i, s := range r.yield {
		if out.Left != nil && !r.yields[i] {
			out.Left.Iterate(func(path fieldpath.Path) { r.yields[i] = r.yields[i] || s.Field(out.Object, path) })
		}
	}
	for _, change := range out.Claims {
		if len(r.take) == 0 {
			continue
		}
		if first := change.Fields[0]; change.Cause == apply.CauseInherited && r.takesFrom(out.Object, first.From.Manager) {
			r.taken = append(r.taken, fmt.Sprintf("all of %s from %s", out.Object, first.From))
			continue
		}
		if change.Cause != apply.CauseTaken {
			continue
		}
		for _, field := range change.Fields {
			r.taken = append(r.taken, fmt.Sprintf("%s of %s from %s", field.Path, out.Object, field.From))
		}
	}
}

// findings are the conditions about the requests. complete tells that every object was there and could be looked at;
// until then what was told before still stands.
func (r *resolution) findings(complete bool) []status.Finding {
	return append(r.aboutTaking(complete), r.aboutYielding(complete)...)
}

func (r *resolution) aboutTaking(complete bool) []status.Finding {
	f := status.Finding{Condition: v1beta1.ConditionFieldsTaken}
	switch {
	case r.takeRequest == "":
		return nil
	case len(r.taken) > 0:
		slices.Sort(r.taken)
		f.Status, f.Reason = metav1.ConditionTrue, ReasonTaken
		if !complete {
			// A write lost a race, or got no answer, after claims had changed hands: the rest is to be taken yet.
			f.Status, f.Reason = metav1.ConditionUnknown, ReasonTaking
		}
		f.Message = r.answerTo() + tookPrefix + strings.Join(r.taken, ", ")
		return []status.Finding{f}
	case len(r.take) > 0 && complete:
		f.Status, f.Reason = metav1.ConditionFalse, ReasonNothingToTake
		f.Message = r.answerTo() + "no contested field fits; to ask again, remove the annotation first"
		return []status.Finding{f}
	default:
		return r.unchanged(v1beta1.ConditionFieldsTaken)
	}
}

func (r *resolution) aboutYielding(complete bool) []status.Finding {
	if len(r.yield) == 0 {
		return nil
	}
	if !complete {
		return r.unchanged(v1beta1.ConditionFieldsYielded)
	}
	var left, refused []string
	for i, s := range r.yield {
		if r.yields[i] {
			left = append(left, s.String())
		} else {
			refused = append(refused, s.String())
		}
	}
	f := status.Finding{
		Condition: v1beta1.ConditionFieldsYielded, Status: metav1.ConditionTrue, Reason: ReasonYielded,
		Message: "left to others: " + strings.Join(left, ", "),
	}
	if len(refused) > 0 {
		f.Status, f.Reason = metav1.ConditionFalse, ReasonNotYieldable
		f.Message = fmt.Sprintf("%s %s: no field that Freehold sets and can leave to others. It can leave those of "+
			"Deployments, StatefulSets and Services, but for owner references, selectors and its own annotations",
			vocabulary.Yield, strings.Join(refused, ", "))
	}
	return []status.Finding{f}
}

func (r *resolution) unchanged(conditionType string) []status.Finding {
	if c := meta.FindStatusCondition(r.previous, conditionType); c != nil {
		return []status.Finding{{Condition: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}
	}
	return nil
}
