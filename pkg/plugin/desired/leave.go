// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
)

// Leaves returns what tells which fields of a live object a writer leaves to others: those that the MCPServer asks it to
// leave, and those that it leaves of itself.
func Leaves(
	writer string, object apply.ObjectRef, live *unstructured.Unstructured, config runtime.ApplyConfiguration, entries []request.Selector,
) func(path fieldpath.Path) bool {
	asked, shared := Yields(object, entries), request.Shared(writer, live, config)
	return func(path fieldpath.Path) bool { return asked(path) || shared != nil && shared(path) }
}

// Yields returns what tells which fields of an object are left to others, given what the MCPServer asks for.
func Yields(object apply.ObjectRef, entries []request.Selector) func(path fieldpath.Path) bool {
	return func(path fieldpath.Path) bool {
		return request.Yieldable(object, path) &&
			slices.ContainsFunc(entries, func(s request.Selector) bool { return s.Field(object, path) })
	}
}

// Left is what comes of leaving fields to others.
type Left struct {
	// Object after the writer has given up what it owned of them.
	Object *unstructured.Unstructured
	// Config is what the writer wants besides.
	Config runtime.ApplyConfiguration
	// Given are the fields that it has given up.
	Given []ownership.Moved
	// Fields are those that are left to others, of what the writer owned and of what it wanted.
	Fields *fieldpath.Set
}

// Leave makes a writer leave fields of an object to others. It comes before Settle, as in the operator: whether a
// difference is worth a write is seen from what the writer still has a say in.
func Leave(
	schema managedfields.TypeConverter, object *unstructured.Unstructured, writer string, config runtime.ApplyConfiguration,
	yields func(path fieldpath.Path) bool,
) (*Left, error) {
	// An entry that cannot be read is repaired by the operator before it gives anything up.
	owned, err := ownership.Fields(ownership.ApplyEntry(object, writer, ""))
	if err != nil {
		owned = &fieldpath.Set{}
	}
	left := &Left{}
	if left.Config, left.Fields, err = apply.Leave(schema, owned, config, yields); err != nil {
		return nil, err
	}
	edit, err := ownership.Release(object, ownership.Holder{Manager: writer, APIVersion: object.GetAPIVersion()}, left.Fields.Has)
	if edit != nil {
		left.Given = edit.Moved
	}
	left.Object, err = Edited(object, edit, err)
	return left, err
}

// Edited returns an object after an edit of its managedFields; the object itself when there is nothing to edit.
func Edited(object *unstructured.Unstructured, edit *ownership.Edit, err error) (*unstructured.Unstructured, error) {
	if err != nil || edit == nil {
		return object, err
	}
	patch, err := edit.Patch(object)
	if err != nil {
		return nil, err
	}
	return Patched(object, patch)
}

// Patched returns an object after a JSON patch.
func Patched(object *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	if text, err = operations.Apply(text); err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	err = after.UnmarshalJSON(text)
	return after, err
}
