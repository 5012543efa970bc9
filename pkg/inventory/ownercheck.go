// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Owner is an MCPServer, and what must be known besides an object to decide whether the object is its child.
type Owner struct {
	// Server is the MCPServer.
	Server metav1.Object
	// Backend is the MCPServer's StatefulSet; nil for none. ToolHive's runner makes it the controller of Services.
	Backend metav1.Object
	// Living returns the name of the MCPServer of the namespace that has a UID; ok is false when there is none.
	Living func(uid types.UID) (name string, ok bool)
}

// Verdict says which MCPServer an object belongs to.
type Verdict struct {
	// Mine reports whether it is the Owner's.
	Mine bool
	// Other is the name of the MCPServer for which it was made, if that is known and it is not the Owner. That MCPServer may
	// be gone.
	Other string
}

// Explain says why an object that is not the Owner's is left alone, and what the user can do about it. exists reports whether
// there is an MCPServer of the name in Verdict.Other; kubectl makes a command with these arguments.
func (v Verdict) Explain(ref apply.ObjectRef, exists bool, kubectl func(...string) string) string {
	switch {
	case v.Other == "":
		return "an object with that name exists, and it is not a child of this MCPServer; rename or delete one of them"
	case exists:
		return fmt.Sprintf("it belongs to MCPServer %s: a child of each MCPServer has this name. "+
			"Create one of the two again under another name", v.Other)
	default:
		return fmt.Sprintf("MCPServer %s, since deleted, left it behind. If it is no longer needed: %s",
			v.Other, kubectl("delete", "-n", ref.Namespace, ref.String()))
	}
}

var (
	mine    = Verdict{Mine: true}
	unknown = Verdict{}
)

// Check decides whether an object of a kind, which has the name of one of the Owner's children, is that child. It is
//
//   - if its controller is the MCPServer, or a predecessor of the same name;
//   - if it has no controller and its source annotation names the MCPServer;
//   - if ToolHive wrote it, or a handback to ToolHive that was interrupted, and its labels name the MCPServer, and its controller is
//     the MCPServer's StatefulSet or it has none;
//   - if it is an orphan: it has no controller, its source is no living MCPServer, and its labels name the MCPServer, where
//     that kind has such a label.
func (o Owner) Check(kind schema.GroupKind, object metav1.Object) Verdict {
	named := ServerNamed(object.GetLabels())
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		switch {
		case IsMCPServer(*controller):
			return o.verdict(controller.UID == o.Server.GetUID() || controller.Name == o.Server.GetName(), controller.Name)
		case o.Backend != nil && controller.UID == o.Backend.GetUID():
			return o.verdict(named == o.Server.GetName() && (writtenByFreehold(object) || writtenByToolHive(object)), named)
		default:
			return unknown
		}
	}
	source, stamped := apply.ParseSource(object.GetAnnotations()[v1beta1.AnnotationSource])
	if stamped {
		if source.UID == o.Server.GetUID() {
			return mine
		}
		if name, ok := o.Living(source.UID); ok {
			return Verdict{Other: name}
		}
	}
	switch {
	case named == o.Server.GetName():
		return o.verdict(stamped || writtenByFreehold(object) || writtenByToolHive(object), "")
	case named != "":
		return Verdict{Other: named}
	default:
		return o.verdict(!hasName(kind) && (stamped || writtenByFreehold(object)), "")
	}
}

func (o Owner) verdict(is bool, other string) Verdict {
	switch {
	case is:
		return mine
	case other != o.Server.GetName():
		return Verdict{Other: other}
	default:
		return unknown
	}
}

// MayBelong reports whether an object may be a child of any MCPServer: one that is not, whatever its name, can be known by its
// identity alone.
func MayBelong(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), IsMCPServer) ||
		object.GetAnnotations()[v1beta1.AnnotationSource] != "" ||
		writtenByFreehold(object) || writtenByToolHive(object)
}

// IsMCPServer reports whether an owner reference is one to an MCPServer, of whatever version.
func IsMCPServer(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == toolhive.GroupName && ref.Kind == v1beta1.MCPServerKind
}

// hasName reports whether children of a kind have a label that names their MCPServer. The kinds that have none are those whose
// names cannot collide: their suffixes differ.
func hasName(kind schema.GroupKind) bool {
	child := Of(kind)
	return child == nil || child.named
}

var registry = managers.Registry()

// writtenByFreehold reports whether the operator has written an object, or the plugin, which writes children in a handback alone. What
// an interrupted one has left with the plugin is to be found by the next run of it, and by an operator that is started instead.
func writtenByFreehold(object metav1.Object) bool {
	return writtenBy(object, func(name string) bool { return registry.Knows(name) || name == managers.Plugin })
}

func writtenByToolHive(object metav1.Object) bool { return writtenBy(object, managers.IsToolHive) }

func writtenBy(object metav1.Object, manager func(name string) bool) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return manager(e.Manager) })
}

// ServerNamed returns the name of the MCPServer in the labels of a child; it is empty when they have none.
func ServerNamed(labels map[string]string) string {
	return cmp.Or(labels[v1beta1.LabelToolHiveName], labels[v1beta1.LabelMCPServer])
}
