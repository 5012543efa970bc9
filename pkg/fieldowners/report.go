// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Report lists the owners of an object's lines and fields.
type Report struct {
	// APIVersion, Kind, Namespace and Name of the object. The namespace may be empty.
	APIVersion, Kind, Namespace, Name string
	// Entries are the object's managedFields: Freehold's first, then those of users, then the system's, each sorted by
	// name.
	Entries []Entry
	// Fields of the object, in the order of its lines, including fields that have others below them.
	Fields []Field
	// Lines of the object as YAML, without its managedFields.
	Lines []Line
}

// Entry is one entry of managedFields: a manager that writes by one operation, through one subresource.
type Entry struct {
	ownership.Owner
	// APIVersion of the entry's paths.
	APIVersion string
	// Side of the manager.
	Side Side
	// Set of the fields that the manager owns.
	Set *fieldpath.Set
}

// Field is one field of the object.
type Field struct {
	// Path in the notation of structured-merge-diff, such as .spec.template.spec.containers[name="mcp"].image.
	Path string
	// Location is the path in parsed form.
	Location fieldpath.Path
	// Value of a field that has no fields below it.
	Value any
	// Leaf reports that the field has no fields below it.
	Leaf bool
	// Owners are the indexes, in Entries, of the managers that own the field.
	Owners []int
	// Whole is the path of the atomic field that contains this one; its owners own the part as well. Empty for none.
	Whole string
	// State reports whether the field has owners, and why not.
	State State
}

// State of a field.
type State string

const (
	// Owned means that the field has an owner.
	Owned State = "Owned"
	// Container means that the field has no owner, but fields below it have.
	Container State = "Container"
	// Unowned means that the field has no owner: it is a default of the API server, or its owner gave it up. Any manager
	// may set it.
	Unowned State = "Unowned"
	// Unownable means that the field cannot have an owner: the API server sets it, or it identifies the object.
	Unownable State = "Unownable"
)

// Line is one line of the object.
type Line struct {
	// Text of the line, without the newline.
	Text string
	// Fields are the indexes, in the report's Fields, of the fields that begin on the line; on a line that continues a
	// value, the index of the field of that value. At least one.
	Fields []int
}

// New returns the report of an object. The schema defines which fields are atomic. It may be nil or not know the kind;
// then New derives this from the owners. It does not modify the object.
func New(object *unstructured.Unstructured, schema managedfields.TypeConverter) (*Report, error) {
	r := &Report{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
	for _, entry := range object.GetManagedFields() {
		set, err := ownership.Fields(&entry)
		if err != nil {
			return nil, err
		}
		owner := ownership.OwnerOf(&entry)
		r.Entries = append(r.Entries, Entry{Owner: owner, APIVersion: entry.APIVersion, Side: SideOf(owner), Set: set})
	}
	// The API server's own order changes from second to second.
	slices.SortFunc(r.Entries, inOrder)
	root := place{fieldpath.NewSet(), fieldpath.NewSet()}
	for i := range r.Entries {
		root.owned = root.owned.Union(r.Entries[i].Set)
	}
	content := object.DeepCopy().Object
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	known := fieldsOf(content, schema)
	if known != nil {
		root.known = known
	}
	w := &walk{report: r, schema: known != nil}
	if err := w.object(content, root); err != nil {
		return nil, fmt.Errorf("%s %s cannot be shown as YAML: %w", r.Kind, r.Name, err)
	}
	return r, nil
}

func inOrder(a, b Entry) int {
	sides := []Side{Freehold, User, System}
	return cmp.Or(
		cmp.Compare(slices.Index(sides, a.Side), slices.Index(sides, b.Side)),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.APIVersion, b.APIVersion),
	)
}

// Ref returns the object as kubectl takes it, such as deployment.apps/web.
func (r *Report) Ref() string {
	kind := strings.ToLower(r.Kind)
	if group, _, found := strings.Cut(r.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + r.Name
}

// OwnersOf returns the indexes, in Entries, of all managers that own a field that begins on a line.
func (r *Report) OwnersOf(line Line) []int {
	var found []int
	for _, i := range line.Fields {
		for _, owner := range r.Fields[i].Owners {
			if !slices.Contains(found, owner) {
				found = append(found, owner)
			}
		}
	}
	slices.Sort(found)
	return found
}

// holders returns the indexes, in Entries, of the managers that own just a field.
func (r *Report) holders(path fieldpath.Path) (found []int) {
	for i := range r.Entries {
		if r.Entries[i].Set.Has(path) {
			found = append(found, i)
		}
	}
	return found
}

// fieldsOf returns all fields of an object as the schema has them; nil when it does not know the kind.
func fieldsOf(content map[string]any, schema managedfields.TypeConverter) *fieldpath.Set {
	if schema == nil {
		return nil
	}
	if value, err := schema.ObjectToTyped(&unstructured.Unstructured{Object: content}, typed.AllowDuplicates); err == nil {
		if set, err := value.ToFieldSet(); err == nil {
			return set
		}
	}
	return nil
}

// Side is the party that a field manager belongs to.
type Side string

const (
	// Freehold is one of the operator's writers.
	Freehold Side = "freehold"
	// User is a user, or a tool that a user has set up: kubectl, an autoscaler, a GitOps tool, another operator.
	User Side = "user"
	// System is Kubernetes itself.
	System Side = "system"
)

// components are field managers of Kubernetes that package managers does not classify: it knows those of the operator's
// children.
var components = []string{"kubelet", "cloud-controller-manager", "apiserver", "coredns", "k3s", "k0s"}

// SideOf returns the side of a manager.
func SideOf(owner ownership.Owner) Side {
	switch managers.ClassOf(owner.Manager, owner.Subresource) {
	case managers.ClassFreehold:
		return Freehold
	case managers.ClassKubernetes:
		return System
	}
	if slices.Contains(components, owner.Manager) {
		return System
	}
	return User
}
