// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Origin is an object that an MCPServer refers to, and the fields that come from it.
type Origin struct {
	// Field of the MCPServer that refers to the object, such as spec.oidcConfigRef, and the kind and the name of this.
	Field, Kind, Name string
	// Fields of a child that the MCPServer would not have, or would have otherwise, if it did not refer to the object. A change of
	// the object may change other fields, too.
	Fields *fieldpath.Set
}

// reference is a field of an MCPServer that refers to an object.
type reference struct {
	field, kind, name string
	remove            func(spec *v1beta1.MCPServerSpec)
}

// referencesOf returns the fields of a spec that refer to objects of which children are made.
func referencesOf(spec *v1beta1.MCPServerSpec) (all []reference) {
	for ref := range configs.Hashed() {
		if named, ok := ref.Named(spec); ok {
			remove := func(spec *v1beta1.MCPServerSpec) { ref.Copy(spec, &v1beta1.MCPServerSpec{}) }
			all = append(all, reference{"spec." + ref.Field, ref.Kind.Name, named.Name, remove})
		}
		// Of authorization there are two fields, the one beside the other.
		if authz := spec.AuthzConfig; ref == configs.AuthzConfigRef.Reference && authz != nil && authz.ConfigMap != nil {
			remove := func(spec *v1beta1.MCPServerSpec) { spec.AuthzConfig = nil }
			all = append(all, reference{"spec.authzConfig.configMap", managers.ConfigMap.Kind, authz.ConfigMap.Name, remove})
		}
	}
	return all
}

// Origins returns the objects that an MCPServer refers to and that affect one of its children, in the order of the fields of its
// spec. To find the fields that come from a reference, it renders the MCPServer without the reference. held are the problems that
// keep the proxy and the objects that it reads from being rendered. The error is a *render.InvalidError when nothing can be
// rendered.
func Origins(in Input, object apply.ObjectRef) (origins []Origin, held []render.Problem, err error) {
	result, err := Render(in)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(result.Intents, func(i render.Intent) bool {
		return i.Kind == object.Kind && i.Name == object.Name && i.Writer == i.Child.Writer
	})
	if at < 0 {
		return nil, result.Held, nil
	}
	all := referencesOf(&in.Server.Spec)
	for _, ref := range all {
		with, without := all, slices.DeleteFunc(slices.Clone(all), func(other reference) bool { return other.field == ref.field })
		set, err := comesWith(in, result.Intents[at].Child, with, without)
		if err != nil {
			return nil, nil, err
		}
		if set == nil { // Another reference needs this one.
			if set, err = comesWith(in, result.Intents[at].Child, []reference{ref}, nil); err != nil {
				return nil, nil, err
			}
		}
		if set != nil && !set.Empty() {
			origins = append(origins, Origin{ref.field, ref.kind, ref.name, set})
		}
	}
	return origins, result.Held, nil
}

// comesWith returns in which fields a child differs between two sets of references; nil when it cannot be rendered from both.
func comesWith(in Input, child *inventory.Child, with, without []reference) (*fieldpath.Set, error) {
	before, err := renderedFrom(in, child, without)
	if before == nil || err != nil {
		return nil, err
	}
	after, err := renderedFrom(in, child, with)
	if after == nil || err != nil {
		return nil, err
	}
	compared, err := before.Compare(after)
	if err != nil {
		return nil, err
	}
	return compared.Added.Union(compared.Removed).Union(compared.Modified).Leaves(), nil
}

// renderedFrom returns a child as it is rendered while the MCPServer has no references but these; nil when it is not.
func renderedFrom(in Input, child *inventory.Child, references []reference) (*typed.TypedValue, error) {
	in.Server = in.Server.DeepCopy()
	for _, ref := range referencesOf(&in.Server.Spec) {
		if !slices.ContainsFunc(references, func(kept reference) bool { return kept.field == ref.field }) {
			ref.remove(&in.Server.Spec)
		}
	}
	result, err := Render(in)
	if err != nil {
		return nil, nil //nolint:nilerr // It is invalid without what was removed.
	}
	at := slices.IndexFunc(result.Intents, func(i render.Intent) bool { return i.Child == child && i.Writer == child.Writer })
	if at < 0 {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(result.Intents[at].Config)
	if err != nil {
		return nil, err
	}
	return writers.Schema().ObjectToTyped(&unstructured.Unstructured{Object: content})
}
