// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
)

type schemaGroupKind = schema.GroupKind

// Selected are the members of a set of an object's fields that an entry stands for.
func Selected(fields *fieldpath.Set, object apply.ObjectRef, s request.Selector) []fieldpath.Path {
	var selected []fieldpath.Path
	fields.Iterate(func(path fieldpath.Path) {
		if s.Field(object, path) {
			selected = append(selected, path.Copy())
		}
	})
	return selected
}

// Settle keeps values as they live that carry no behaviour, as the operator does.
func Settle(writer string, live *unstructured.Unstructured, config runtime.ApplyConfiguration) {
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch want := config.(type) {
	case *appsv1ac.DeploymentApplyConfiguration:
		var object appsv1.Deployment
		if convert(live.Object, &object) == nil && writer == managers.Proxy {
			if owned, err := appsv1ac.ExtractDeployment(&object, writer); err == nil {
				render.PreserveProxy(want, render.KeepProxy(owned))
			}
		}
	case *appsv1ac.StatefulSetApplyConfiguration:
		var object appsv1.StatefulSet
		if convert(live.Object, &object) == nil && writer == managers.Backend {
			if owned, err := appsv1ac.ExtractStatefulSet(&object, writer); err == nil {
				render.PreserveBackend(want, render.KeepBackend(owned))
			}
		}
	}
}

// identity are the fields of a configuration that say which object is meant; nobody owns them.
var identity = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
)

// compare holds an intent against the object: whether it is so already, and what others contest. It does what the API
// server does with an apply that is not forced. What is left to others it does not name any more.
func (w *worker) compare(intent *Intent, left *fieldpath.Set, yields func(path fieldpath.Path) bool, unset []string) error {
	live, err := w.Schema.ObjectToTyped(&unstructured.Unstructured{Object: withoutManagedFields(intent.Live)}, typed.AllowDuplicates)
	if err != nil {
		return err
	}
	if sourceOf(w.Server).Unlike(intent.Live, sourceKey(intent.Writer)) != "" {
		Stamp(intent.Want, intent.Writer, w.Server) // What the object tells of its source was not written by the operator.
	}
	want, err := w.typed(intent.Want)
	if err != nil {
		return err
	}
	fields, err := want.ToFieldSet()
	if err != nil {
		return err
	}
	own, err := ownership.Fields(ownership.ApplyEntry(intent.Live, intent.Writer, ""))
	if err != nil {
		return err
	}
	released := own.Intersection(left)
	released.Iterate(func(path fieldpath.Path) { intent.Released = append(intent.Released, path.String()) })
	merged, err := live.Merge(want)
	if err != nil {
		return err
	}
	removed, err := unwanted(live, unset, yields)
	if err != nil {
		return err
	}
	merged = merged.RemoveItems(removed)
	changes, err := live.Compare(merged)
	if err != nil {
		return err
	}
	sources := fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "annotations", v1beta1.AnnotationSource),
		fieldpath.MakePathOrDie("metadata", "annotations", v1beta1.AnnotationReplicasSource),
	)
	intent.Same = changes.IsSame() && own.Difference(released).Difference(sources).Equals(fields.Difference(identity))
	if intent.Same {
		return nil
	}
	Stamp(intent.Want, intent.Writer, w.Server)
	if intent.Trial = intent.Want; !released.Empty() {
		if intent.Trial, err = w.trial(intent.Want, live, released); err != nil {
			return err
		}
	}
	if !removed.Empty() {
		removed.Leaves().Iterate(func(path fieldpath.Path) { intent.Removed = append(intent.Removed, path.String()) })
		trial, err := w.typed(intent.Trial)
		if err != nil {
			return err
		}
		if merged, err = live.Merge(trial); err != nil {
			return err
		}
		after, _ := merged.RemoveItems(removed).AsValue().Unstructured().(map[string]any)
		intent.After = &unstructured.Unstructured{Object: after}
	}
	return contest(intent, changes.Modified.Union(changes.Added).Union(removed))
}

// unwanted are the fields of an object that are to go although the writer does not own them: those at some paths, with all
// below them that is not left to others.
func unwanted(live *typed.TypedValue, unset []string, yields func(path fieldpath.Path) bool) (*fieldpath.Set, error) {
	found := &fieldpath.Set{}
	if len(unset) == 0 {
		return found, nil
	}
	all, err := live.ToFieldSet()
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	var roots []fieldpath.Path
	all.Iterate(func(path fieldpath.Path) {
		for i := range path {
			root := path[:i+1]
			switch {
			case !slices.Contains(unset, root.String()):
			case yields(path):
				kept[root.String()] = true
			default:
				found.Insert(path.Copy())
				roots = append(roots, root.Copy())
			}
		}
	})
	for _, root := range roots {
		if !kept[root.String()] {
			found.Insert(root) // Else it would stay, and be empty.
		}
	}
	return found, nil
}

// keysOf are the fields by which the items of lists are told that the fields of a set lie in.
func keysOf(fields *fieldpath.Set) *fieldpath.Set {
	keys := &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		for i, element := range path {
			if element.Key == nil {
				continue
			}
			for _, key := range *element.Key {
				keys.Insert(append(path[:i+1].Copy(), fieldpath.PathElement{FieldName: &key.Name}))
			}
		}
	})
	return keys
}

// trial adds to a configuration the released fields of the object.
func (w *worker) trial(want map[string]any, live *typed.TypedValue, released *fieldpath.Set) (map[string]any, error) {
	config, err := w.typed(want)
	if err != nil {
		return nil, err
	}
	both, err := config.Merge(live.ExtractItems(released.Union(keysOf(released))))
	if err != nil {
		return nil, err
	}
	trial, _ := both.AsValue().Unstructured().(map[string]any)
	return trial, nil
}

func (w *worker) typed(object map[string]any) (*typed.TypedValue, error) {
	return w.Schema.ObjectToTyped(&unstructured.Unstructured{Object: object})
}

// contest finds out who holds the fields that an intent would change.
func contest(intent *Intent, changed *fieldpath.Set) error {
	contested := &fieldpath.Set{}
	for _, entry := range intent.Live.GetManagedFields() {
		if entry.Manager == intent.Writer && entry.Operation == "Apply" && entry.Subresource == "" {
			continue
		}
		set, err := ownership.Fields(&entry)
		if err != nil {
			return err
		}
		contested = contested.Union(set.Intersection(changed))
	}
	contested.Iterate(func(path fieldpath.Path) {
		c := Contested{Path: path.String(), Location: path.Copy(), Theirs: At(intent.Live.Object, path), Ours: At(intent.Want, path)}
		for _, o := range ownership.Owners(intent.Live, c.Path) {
			if !o.Applies(intent.Writer, "") {
				c.Owners = append(c.Owners, o)
			}
		}
		intent.Contested = append(intent.Contested, c)
	})
	return nil
}

// At returns the value at a path of an object that was decoded from JSON; nil when there is none.
func At(object any, path fieldpath.Path) any {
	for _, element := range path {
		switch content := object.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil
			}
			object = content[*element.FieldName]
		case []any:
			object = item(content, element)
		default:
			return nil
		}
	}
	return object
}

func item(list []any, element fieldpath.PathElement) any {
	for i, candidate := range list {
		switch {
		case element.Index != nil && *element.Index == i:
			return candidate
		case element.Value != nil && value.Equals(*element.Value, value.NewValueInterface(candidate)):
			return candidate
		case element.Key != nil && hasKeys(candidate, *element.Key):
			return candidate
		}
	}
	return nil
}

func hasKeys(candidate any, keys value.FieldList) bool {
	object, ok := candidate.(map[string]any)
	for _, key := range keys {
		ok = ok && value.Equals(key.Value, value.NewValueInterface(object[key.Name]))
	}
	return ok
}

func withoutManagedFields(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	return content
}
