// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Standing is whose an MCPServer is.
type Standing string

// Whose an MCPServer may be.
const (
	// OfToolHive is one that is to be taken over, or whose takeover has begun.
	OfToolHive Standing = "ToolHive"
	// OfFreehold is one of which nothing is left to take over.
	OfFreehold Standing = "Freehold"
	// OfNobody is one for which nothing was made yet.
	OfNobody Standing = "Nobody"
)

// StandingOf tells whose an MCPServer is, from it itself and its children.
func StandingOf(server *unstructured.Unstructured, children []*unstructured.Unstructured) Standing {
	ours := ownership.ApplyEntry(server, managers.Finalizer, "") != nil
	for _, child := range children {
		ref := refOf(child)
		if takeover.Untaken(ref, child) {
			return OfToolHive
		}
		ours = ours || ownership.ApplyEntry(child, takeover.MainWriter(ref), "") != nil
	}
	switch {
	case ours:
		return OfFreehold
	case takeover.Held(server, ""):
		return OfToolHive
	}
	return OfNobody
}

// Unknown stands for the process of the backend that a proxy is to be attached to, where that does not run yet.
const Unknown = "(the backend's new process)"

// Object is what becomes of one object of an MCPServer.
type Object struct {
	Ref apply.ObjectRef
	// Live is the object as it is; nil when there is none.
	Live *unstructured.Unstructured
	// Predecessor is ToolHive's object in whose place this one is made under another name; nil for none.
	Predecessor *unstructured.Unstructured
	// Merged is the object as it would be, before the API server fills defaults in; nil when it is deleted.
	Merged *unstructured.Unstructured
	// When it is written.
	When takeover.Moment
	// Contested are the fields that others than ToolHive hold at another value, and who of the operator's would write them. While there are any that the MCPServer does
	// not ask to be taken, nothing of the object is written; Merged is what follows if all are taken.
	Contested []Contested
	// Free are fields that are nobody's afterwards, and keep their values.
	Free []string
}

// Contested is a field that somebody else holds.
type Contested struct {
	desired.Contested
	// Writer is the operator's.
	Writer string
}

// Plan is what a takeover would change.
type Plan struct {
	// Objects in the order in which they are written.
	Objects []Object
	// GateClosed tells that the gate on the backend's pods keeps the operator's proxyrunners from writing as it is.
	GateClosed bool
	// Notices are what the operator would tell about the spec.
	Notices []render.Problem
}

// New works out what a takeover would change. The error is a *render.InvalidError when the operator would leave the
// MCPServer as it is.
func New(in desired.Input) (*Plan, error) {
	w := &worker{
		Input: in, yield: request.Read(in.Server.Annotations[v1beta1.AnnotationYield]), take: request.Read(in.Server.Annotations[v1beta1.AnnotationTake]),
	}
	set := in.Child(w.ref(managers.StatefulSet, inventory.Backend.Name(in.Server.Name)))
	plan := &Plan{GateClosed: set == nil || takeover.Closed(gateOf(set))}
	if !plan.GateClosed || w.Process == "" {
		w.Process = Unknown
	}
	result, err := desired.Render(w.Input)
	if err != nil {
		return nil, err
	}
	plan.Notices = result.Notices
	for _, intent := range result.Intents {
		if managers.CountsReplicas(intent.Writer) {
			continue
		}
		object, err := w.object(intent, result)
		if err != nil {
			return nil, err
		}
		object.When = takeover.MomentOf(intent.Child, plan.GateClosed)
		if object.Live == nil && object.Ref.Kind == managers.Deployment {
			object.When = WhenBackendReady
		}
		if object.Live == nil {
			object.Predecessor = in.Child(w.ref(object.Ref.Kind, intent.Child.Name(in.Server.Name)))
		}
		plan.Objects = append(plan.Objects, *object)
	}
	for _, absent := range result.Absent {
		ref := w.ref(absent.Kind, absent.Name)
		if live := in.Child(ref); live != nil {
			plan.Objects = append(plan.Objects, Object{Ref: ref, Live: live, When: takeover.AtOnce})
		}
	}
	for _, child := range inventory.Children() {
		ref := child.Ref(in.Server.Namespace, in.Server.Name)
		if live := in.Child(ref); child.ByContent && live != nil {
			plan.Objects = append(plan.Objects, Object{Ref: ref, Live: live, When: WhenUnused})
		}
	}
	slices.SortStableFunc(plan.Objects, byMoment)
	return plan, nil
}

// worker works out what becomes of objects.
type worker struct {
	desired.Input
	yield, take []request.Selector
}

func (w *worker) ref(kind groupKind, name string) apply.ObjectRef {
	ref := apply.ObjectRef{Kind: kind}
	ref.Namespace, ref.Name = w.Server.Namespace, name
	return ref
}

func (w *worker) object(intent render.Intent, result *render.Result) (*Object, error) {
	o := &Object{Ref: w.ref(intent.Kind, intent.Name)}
	o.Live = w.Child(o.Ref)
	if o.Live == nil {
		want, err := desired.Encode(intent.Config)
		if err != nil {
			return nil, err
		}
		desired.Stamp(want, intent.Writer, w.Server)
		o.Merged = &unstructured.Unstructured{Object: want}
		return o, nil
	}
	writer, number, capped := w.replicas(o, result)
	o.Merged = o.Live
	if o.Live != nil && takeover.Untaken(o.Ref, o.Live) {
		heir := ""
		if number != nil {
			heir = writer
		}
		var err error
		if o.Merged, err = inherit(o.Live, o.Ref, heir); err != nil {
			return nil, fmt.Errorf("the claims on %s cannot be passed on: %w", o.Ref, err)
		}
	}
	if err := w.apply(o, intent.Writer, intent.Config, false); err != nil {
		return nil, err
	}
	if writer == "" {
		return o, nil
	}
	if number == nil {
		if len(ownership.Owners(o.Live, replicasPath)) > 0 && len(ownership.Owners(o.Merged, replicasPath)) == 0 {
			o.Free = append(o.Free, replicasPath)
		}
		return o, nil
	}
	return o, w.apply(o, writer, number, capped)
}

const replicasPath = ".spec.replicas"

// replicas returns the writer of a workload's number of pods, and what it writes; nil where the number stays as it is.
// Capped tells that it is one, or none, because there may be no more, whoever has set it.
func (w *worker) replicas(o *Object, result *render.Result) (writer string, number runtime.ApplyConfiguration, capped bool) {
	switch o.Ref.Kind {
	case managers.Deployment:
		writer = managers.ProxyReplicas
	case managers.StatefulSet:
		writer = managers.BackendReplicas
	default:
		return "", nil, false
	}
	live, found, _ := unstructured.NestedInt64(o.Live.Object, "spec", "replicas")
	if result.SinglePod && found && live > 1 {
		number, _ = result.Capped(writer, o.Ref.Kind, o.Ref.Name, o.Ref.Namespace)
		return writer, number, true
	}
	if i := slices.IndexFunc(result.Intents, func(i render.Intent) bool { return i.Writer == writer }); i >= 0 {
		number = result.Intents[i].Config
	}
	return writer, number, false
}

// apply merges what a writer wants into the object. Force tells that the operator takes what is contested without being
// asked.
func (w *worker) apply(o *Object, writer string, config runtime.ApplyConfiguration, force bool) error {
	config, err := w.leave(o, writer, config)
	if err != nil {
		return err
	}
	desired.Settle(writer, o.Merged, config)
	want, err := desired.Encode(config)
	if err != nil {
		return err
	}
	desired.Stamp(want, writer, w.Server)
	merged, err := Merge(w.Schema, o.Merged, want, writer, "", force)
	paths, conflict := contested(err)
	if conflict {
		o.contest(writer, paths, want)
		merged, err = Merge(w.Schema, o.Merged, want, writer, "", true)
	}
	if err != nil {
		return fmt.Errorf("what %s wants of %s cannot be merged: %w", writer, o.Ref, err)
	}
	o.Merged = merged
	return nil
}

// leave returns what a writer wants without what the MCPServer asks to be left to others, and makes the writer give up
// what it has inherited of that.
func (w *worker) leave(o *Object, writer string, config runtime.ApplyConfiguration) (runtime.ApplyConfiguration, error) {
	left, err := desired.Leave(w.Schema, o.Merged, writer, config, desired.Leaves(writer, o.Ref, o.Merged, config, w.yield))
	if err != nil {
		return nil, err
	}
	for _, moved := range left.Given {
		o.Free = append(o.Free, moved.Path)
	}
	o.Merged = left.Object
	return left.Config, nil
}

// contest notes the fields of a conflict.
func (o *Object) contest(writer string, paths []string, want map[string]any) {
	for _, entry := range o.Merged.GetManagedFields() {
		if entry.Manager == writer && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			continue
		}
		set, err := ownership.Fields(&entry)
		if err != nil {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			known := slices.ContainsFunc(o.Contested, func(c Contested) bool { return c.Path == path.String() })
			if known || !slices.Contains(paths, path.String()) {
				return
			}
			c := Contested{Writer: writer, Contested: desired.Contested{
				Path: path.String(), Location: path.Copy(), Theirs: desired.At(o.Live.Object, path), Ours: desired.At(want, path),
			}}
			for _, owner := range ownership.Owners(o.Merged, c.Path) {
				if !owner.Applies(writer, "") {
					c.Owners = append(c.Owners, owner)
				}
			}
			o.Contested = append(o.Contested, c)
		})
	}
}

// Taken tells whether the MCPServer asks for a contested field to be taken.
func (o *Object) Taken(c Contested, requests []request.Selector) bool {
	return slices.ContainsFunc(requests, func(s request.Selector) bool {
		if s.Manager == "" {
			return s.Field(o.Ref, c.Location)
		}
		ofObject := s.Object == "" || s.Object == o.Ref.String()
		return ofObject && !slices.ContainsFunc(c.Owners, func(owner ownership.Owner) bool { return owner.Manager != s.Manager })
	})
}
