// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Contested is a field for which the operator wants a different value than another field manager has set.
type Contested struct {
	// Object that has the field, and Writer that wants to set it.
	Object apply.ObjectRef
	Writer string
	// Path of the field, and the same as text.
	Location fieldpath.Path
	Path     string
	// Owners that hold it, all but the writer.
	Owners []ownership.Owner
	// Theirs is the present value, nil for none; Ours the one that the writer wants.
	Theirs, Ours any
}

// Selector returns the entry of a request that is about the field alone, or about the variable, volume or probe of which it is one of several
// alternatives.
func (c Contested) Selector() request.Selector {
	return request.Selector{Object: c.Object.String(), Path: request.Settling(c.Path, c.Ours == nil)}
}

// Yieldable reports whether the field can be left to others.
func (c Contested) Yieldable() bool {
	return request.Yieldable(c.Object, c.Location) && request.YieldableBy(c.Object, c.Path, c.Ours == nil)
}

// Dispute is what a writer is denied of an object. While it stands, the writer writes nothing of that object.
type Dispute struct {
	Object apply.ObjectRef
	Writer string
}

// Dispute returns the dispute that the field is a part of.
func (c Contested) Dispute() Dispute { return Dispute{Object: c.Object, Writer: c.Writer} }

// Disputes groups contested fields by the dispute that they are a part of, in the order of their first fields.
func Disputes(all []Contested) (groups [][]Contested) {
	at := map[Dispute]int{}
	for _, c := range all {
		i, found := at[c.Dispute()]
		if !found {
			i = len(groups)
			at[c.Dispute()], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// Leavable reports whether a dispute ends if its fields are left to others: all of them can be. The operator offers it by the same rule.
func Leavable(dispute []Contested) bool {
	return !slices.ContainsFunc(dispute, func(c Contested) bool { return !c.Yieldable() })
}

// ChosenBy reports whether an entry of a request is about the field, or about one of its owners.
func (c Contested) ChosenBy(s request.Selector) bool {
	return slices.ContainsFunc(c.Owners, func(o ownership.Owner) bool { return s.Owned(c.Object, c.Location, o) })
}

// IsOf reports whether intruders alone own the field.
func (c Contested) IsOf(intruders []Intruder) bool {
	return !slices.ContainsFunc(c.Owners, func(o ownership.Owner) bool {
		return !slices.ContainsFunc(intruders, func(i Intruder) bool { return i.Object == c.Object && i.Owner.Manager == o.Manager })
	})
}

// Intruder is a field manager of ToolHive that owns fields of a child which the operator has taken over. As long as there is one, the
// operator leaves ToolHive a part of the status.
type Intruder struct {
	// Object that has the fields.
	Object apply.ObjectRef
	// Owner of the fields.
	Owner ownership.Owner
}

// Intruders returns those of the children of an MCPServer.
func Intruders(server *v1beta1.MCPServer, children []*unstructured.Unstructured) (all []Intruder) {
	each := func(yield func(apply.ObjectRef, metav1.Object) bool) {
		for _, child := range children {
			if !yield(takeover.RefOf(child), child) {
				return
			}
		}
	}
	for ref, child := range each {
		for _, owner := range takeover.Intruders(server, each, ref, child) {
			all = append(all, Intruder{ref, owner})
		}
	}
	return all
}

// ChosenBy reports whether an entry of a request is about all that the intruder owns of the object.
func (i Intruder) ChosenBy(s request.Selector) bool {
	return s.Manager == i.Owner.Manager && (s.Object == "" || s.Object == i.Object.String())
}

// ContestedIn returns the fields in which a plan is in conflict with others.
func ContestedIn(plan *apply.Planned) []Contested {
	return ContestedAt(plan.Object, plan.Writer, "", plan.After, plan.Config(), plan.Contested())
}

// ContestedAt returns some fields of an object as contested between their owners and a writer that wants other values.
func ContestedAt(
	object apply.ObjectRef, writer, subresource string, live *unstructured.Unstructured, want map[string]any, fields []fieldpath.Path,
) (all []Contested) {
	for _, path := range fields {
		c := Contested{Object: object, Writer: writer, Location: path, Path: path.String(), Theirs: ownership.ValueAt(live.Object, path), Ours: ownership.ValueAt(want, path)}
		c.Owners = slices.DeleteFunc(ownership.Owners(live, c.Path), func(o ownership.Owner) bool { return o.Applies(writer, subresource) })
		if len(c.Owners) == 0 {
			c.Owners = []ownership.Owner{{}} // an unknown client
		}
		all = append(all, c)
	}
	return all
}

// heldStatus returns what other field managers own of an MCPServer's status and the operator does not.
func (p *Planner) heldStatus() ([]Contested, error) {
	if !managers.Owns(p.Server, managers.Status, "status") {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.Server)
	if err != nil {
		return nil, err
	}
	w, _ := managers.Registry().Writer(managers.Status, managers.MCPServer, "status")
	return held(&unstructured.Unstructured{Object: content}, p.Ref(managers.MCPServer, p.Server.Name), w, takeover.FromToolHive)
}

// HeldConfig returns what other field managers own of an object that MCPServers refer to, and the operator does not, though it
// keeps the object.
func HeldConfig(object *unstructured.Unstructured) (all []Contested, err error) {
	ref := takeover.RefOf(object)
	if !managers.Owns(object, takeover.MainWriter(ref), "") {
		return nil, nil
	}
	for _, w := range managers.Registry().Writers() {
		if w.Kind != ref.Kind {
			continue
		}
		fields, err := held(object, ref, w, func(ownership.Owner) bool { return false })
		if err != nil {
			return nil, err
		}
		all = append(all, fields...)
	}
	return all, nil
}

// held returns what other field managers, except some, own of a writer's claim and the writer does not: it shares fields that it
// wants to have the same value. What it would write to a status cannot be known from outside, so Ours is missing.
func held(object *unstructured.Unstructured, ref apply.ObjectRef, w fieldmanager.Writer, but func(ownership.Owner) bool) ([]Contested, error) {
	others := func(_ *metav1.ManagedFieldsEntry, o ownership.Owner) bool {
		ours := managers.IsNamed(w.Name, o.Manager) && o.Applies(o.Manager, w.Subresource)
		return !ours && !but(o)
	}
	set, err := ownership.HeldBy(object, others, w.Claim.Covers)
	if err != nil {
		return nil, err
	}
	if set, err = ownership.Alone(object, set, w.Name, w.Subresource); err != nil {
		return nil, err
	}
	var fields []fieldpath.Path
	set.Iterate(func(path fieldpath.Path) { fields = append(fields, path.Copy()) })
	return ContestedAt(ref, w.Name, w.Subresource, object, nil, fields), nil
}

// ConditionsOf returns the conditions of an object; none where they cannot be read.
func ConditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	var of struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &of) // Then there are none.
	return of.Status.Conditions
}

// Same reports whether the object is as wanted already, so that nothing is applied.
func (i *Intent) Same() bool { return i.Planned != nil && i.Config() == nil && i.Err == nil }

// Trial returns what to apply in a dry run to see how the object changes: what the writer applies, and what it gives up
// before that, as it is. A dry run cannot give it up first; to leave it out would remove it.
func (i *Intent) Trial(schema managedfields.TypeConverter) (map[string]any, error) {
	if i.Left == nil {
		return i.Config(), nil
	}
	own, err := ownership.Fields(ownership.ApplyEntry(i.Live, i.Writer, ""))
	if err != nil || own.Intersection(i.Left).Empty() {
		return i.Config(), err
	}
	live, err := schema.ObjectToTyped(i.Live, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	config, err := schema.ObjectToTyped(&unstructured.Unstructured{Object: i.Config()})
	if err != nil {
		return nil, err
	}
	both, err := config.Merge(live.ExtractItems(own.Intersection(i.Left), typed.WithAppendKeyFields()))
	if err != nil {
		return nil, err
	}
	trial, _ := both.AsValue().Unstructured().(map[string]any)
	return trial, nil
}
