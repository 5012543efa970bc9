// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover says which writer inherits which fields when Freehold takes an object over from ToolHive, and what it takes
// to hand one back. The operator carries out the takeover, which the kubectl plugin shows beforehand; the plugin carries out the
// handback.
package takeover

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// MainWriter returns the manager whose claim makes an object Freehold's.
func MainWriter(ref apply.ObjectRef) string {
	switch {
	case ref.Kind == managers.MCPServer:
		return managers.Finalizer
	case managers.ConfigOf(ref.Kind) != nil:
		return managers.ConfigFinalizer
	}
	return inventory.MainWriter(ref.Kind, ref.Name)
}

// Held reports whether ToolHive owns fields of an object, through the subresource; "" is the object itself.
func Held(object metav1.Object, subresource string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return managers.IsToolHive(e.Manager) && e.Subresource == subresource
	})
}

// LastOfToolHive returns when a manager of ToolHive last changed the fields of an object that it owns; ok is false when none owns any.
func LastOfToolHive(object metav1.Object) (at time.Time, ok bool) {
	for _, entry := range object.GetManagedFields() {
		if owner := ownership.OwnerOf(&entry); FromToolHive(owner) {
			at, ok = slices.MaxFunc([]time.Time{at, owner.Since}, time.Time.Compare), true
		}
	}
	return at, ok
}

// Shows reports whether an object of a cache shows that ToolHive's operator works in the cluster, or did until lately: it owns fields, or
// the object has a finalizer of ToolHive that is not Freehold's. Freehold uses the same names.
func Shows(obj any) bool {
	object, ok := obj.(metav1.Object)
	if !ok {
		return false
	}
	if _, written := LastOfToolHive(object); written {
		return true
	}
	return !managers.Owns(object, managers.Finalizer, "") && !managers.Owns(object, managers.ConfigFinalizer, "") &&
		slices.ContainsFunc(object.GetFinalizers(), func(finalizer string) bool {
			domain, _, _ := strings.Cut(finalizer, "/")
			return domain == toolhive.GroupName || strings.HasSuffix(domain, "."+toolhive.GroupName)
		})
}

// FromToolHive reports whether a ToolHive manager owns the fields.
func FromToolHive(owner ownership.Owner) bool { return managers.IsToolHive(owner.Manager) }

// FromPlugin reports whether the plugin owns the fields, as an interrupted handback leaves them.
func FromPlugin(owner ownership.Owner) bool { return owner.Manager == managers.Plugin }

// HeldByPlugin reports whether a handback that was interrupted has left anything of a child with the plugin.
func HeldByPlugin(child metav1.Object) bool {
	return slices.ContainsFunc(child.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return FromPlugin(ownership.OwnerOf(&e)) })
}

// EndConflict says how a conflict about an object that MCPServers refer to ends, and by which arguments of kubectl; none for no command.
// Who removes a status, or a field with a default, owns the default in its place, and Freehold would conflict with that: so the command
// empties the status, and gives a group the phase that Freehold wants.
func EndConflict(ref apply.ObjectRef, live metav1.Object) (how string, kubectl []string) {
	if Held(live, "") || Held(live, "status") {
		return "Freehold does not write this object while ToolHive's operator does. Stop ToolHive's operator and run Freehold's with " +
			"--configs=freehold, or leave the object to it with --configs=toolhive", nil
	}
	empty := "{}"
	if ref.Kind.Kind == v1beta1.MCPGroupKind {
		empty = `{"phase":"Ready"}`
	}
	return "Freehold writes the other fields. Stop that field manager, then clear the status; Freehold writes it again", []string{
		"patch", "-n", ref.Namespace, ref.String(), "--subresource=status", "--type=json",
		`--patch=[{"op":"replace","path":"/status","value":` + empty + `}]`,
	}
}

// Untaken reports whether a child is still ToolHive's to be taken. ToolHive's ConfigMaps are not: ours have names of their
// own, and ToolHive's stay as they are for the pods that read them, and are deleted when there are none.
func Untaken(ref apply.ObjectRef, live metav1.Object) bool {
	return ref.Kind != managers.ConfigMap && Held(live, "") && !managers.Owns(live, MainWriter(ref), "")
}

// Progress returns how far the takeover of an MCPServer has come, as Freehold has recorded it; empty when it has recorded nothing. A value
// that another field manager has set is not believed: the entry of Freehold's writer, which writes nothing else, ends when that happens.
// No write of the status changes the annotation or that entry.
func Progress(server metav1.Object) v1beta1.TakeoverProgress {
	progress := v1beta1.TakeoverProgress(server.GetAnnotations()[v1beta1.AnnotationTakeoverProgress])
	known := progress == v1beta1.TakeoverUnderWay || progress == v1beta1.TakeoverDone
	if !known || !managers.Owns(server, managers.Takeover, "") {
		return ""
	}
	return progress
}

// Begun reports whether a takeover was begun, or Freehold works for the MCPServer anyway. Then it goes on as far as it can, despite any
// obstacle since.
func Begun(server metav1.Object) bool {
	return Progress(server) == v1beta1.TakeoverUnderWay || managers.Owns(server, managers.Finalizer, "")
}

// Children are those of one MCPServer.
type Children = iter.Seq2[apply.ObjectRef, metav1.Object]

// IsDue reports whether a child is to be taken over. Once all were taken, none is again: ToolHive has come back.
func IsDue(server metav1.Object, children Children, ref apply.ObjectRef, child metav1.Object) bool {
	if !Untaken(ref, child) {
		return false
	}
	switch Progress(server) {
	case v1beta1.TakeoverUnderWay:
		return true
	case v1beta1.TakeoverDone:
		return false
	}
	return order(server, child) <= 0 || !WasTaken(server, children)
}

// WasTaken reports whether managedFields show a takeover by a version of Freehold that recorded no progress. Freehold creates no child before
// it owns the finalizer of the MCPServer. So it has taken over an older child that it owns; or the child is from a backup, or the claim to the
// finalizer was lost and restored. In any of these cases, what ToolHive has created since is not to be taken.
func WasTaken(server metav1.Object, children Children) bool {
	for ref, child := range children {
		if order(server, child) < 0 && managers.Owns(child, MainWriter(ref), "") {
			return true
		}
	}
	return false
}

// order compares the creation of a child with the time at which Freehold came to own the finalizer of its MCPServer: negative for an older
// child, positive for a younger one. It is 0 within one second, and while Freehold does not own the finalizer.
func order(server, child metav1.Object) int {
	for _, entry := range server.GetManagedFields() {
		if managers.IsNamed(managers.Finalizer, entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.Time != nil {
			return cmp.Compare(child.GetCreationTimestamp().Unix(), entry.Time.Unix())
		}
	}
	return 0
}

// Intruders returns the managers of ToolHive that own fields of a child that is not to be taken over.
func Intruders(server metav1.Object, children Children, ref apply.ObjectRef, child metav1.Object) (all []ownership.Owner) {
	if ref.Kind == managers.ConfigMap || IsDue(server, children, ref, child) {
		return nil
	}
	entries := child.GetManagedFields()
	for i := range entries {
		if owner := ownership.OwnerOf(&entries[i]); FromToolHive(owner) && owner.Subresource == "" {
			all = append(all, owner)
		}
	}
	return all
}

// Heirs returns the writers that inherit the claims of ToolHive's managers on an object. replicas are those of them that
// have a number of replicas to write.
//
// A field that ToolHive has set and Freehold does not want is removed, since it passes to a writer that does not apply it.
// The number of replicas does not, where the spec names none: it stays, without an owner. So do values that ToolHive shares
// with others, such as the list of finalizers itself.
func Heirs(writers []fieldmanager.Writer, ref apply.ObjectRef, replicas ...string) []ownership.Heir {
	var heirs []ownership.Heir
	for _, w := range writers {
		inherits := w.Name == MainWriter(ref) || w.Subresource == "status" || slices.Contains(replicas, w.Name)
		if w.Kind != ref.Kind || !inherits {
			continue
		}
		heir := ownership.Heir{
			Holder: ownership.Holder{Manager: w.Name, Subresource: w.Subresource, APIVersion: apiVersion(ref.Kind)},
			Covers: w.Claim.Covers,
		}
		switch w.Name {
		case managers.Status:
			heir.Covers = func(path fieldpath.Path) bool { return w.Claim.Covers(path) || IsCondition(path) }
		case managers.ConfigStatus, managers.GroupStatus:
			heir.Covers = isInConfigStatus
		}
		heirs = append(heirs, heir)
	}
	return heirs
}

// IsCondition reports whether a path of an MCPServer is that of a condition, or of a part of one.
func IsCondition(path fieldpath.Path) bool {
	return len(path) > 2 && path[:2].Equals(fieldpath.MakePathOrDie("status", "conditions"))
}

// isInConfigStatus reports whether a path is below the status of an object that MCPServers refer to. Earlier versions of ToolHive
// have fields there that are not needed any more. The list of conditions itself is shared with others.
func isInConfigStatus(path fieldpath.Path) bool {
	return len(path) > 1 && path[:1].Equals(fieldpath.MakePathOrDie("status")) && !path.Equals(fieldpath.MakePathOrDie("status", "conditions"))
}

// Gate returns the generation below which no proxyrunner writes a StatefulSet whose pod template has a value of
// v1beta1.AnnotationGeneration; 0 when that names none.
func Gate(generation string) int64 {
	gate, err := strconv.ParseInt(generation, 10, 64)
	if err != nil {
		return 0
	}
	return gate
}

// Closed reports whether a gate keeps the proxyrunners of Freehold's proxies from writing.
func Closed(gate int64) bool { return gate > runconfig.Generation }

// apiVersion returns the version that the field paths of the writers of a kind are of.
func apiVersion(kind schema.GroupKind) string {
	if child := inventory.Of(kind); child != nil {
		return child.APIVersion()
	}
	if config := managers.ConfigOf(kind); config != nil {
		return config.GroupVersion().String()
	}
	return v1beta1.SchemeGroupVersion.String()
}
