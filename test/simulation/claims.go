// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// numberOfReplicas is the field that the operator takes from any manager where there may be one pod only.
var numberOfReplicas = fieldmanager.Path("spec", "replicas")

// marks are the fields that only Freehold writes. A manager that owns one has written the object from a copy.
var marks = []fieldpath.Path{
	fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationSource),
	fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationReplicasSource),
	fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationReplicasWritten),
}

// goneVersion is a version that no CustomResourceDefinition of ToolHive has.
const goneVersion = toolhive + "/v1alpha0"

// heirs are the managers to which the plugin gives fields.
var heirs = []string{managers.Plugin, managers.ToolHiveOperator, managers.ToolHiveRunner}

// claim is what the API server identifies an entry of managedFields by, but for the version.
type claim struct {
	manager, subresource string
	operation            metav1.ManagedFieldsOperationType
}

// claimsOf returns the fields of each claim on an object.
func (o *oracle) claimsOf(obj runtime.Object) map[claim]*fieldpath.Set {
	all := map[claim]*fieldpath.Set{}
	for _, entry := range access(obj).GetManagedFields() {
		key := claim{entry.Manager, entry.Subresource, entry.Operation}
		if all[key] == nil {
			all[key] = &fieldpath.Set{}
		}
		all[key] = all[key].Union(o.fieldsOf(&entry))
	}
	return all
}

func (o *oracle) fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set, err := ownership.Fields(entry)
	if err != nil {
		o.s.t.Fatal(err)
	}
	return set
}

// protected returns the fields of an entry that a request may neither change nor take. The plugin takes from Freehold's managers, and
// goes on with what an earlier run of it has taken.
func (o *oracle) protected(r *apiserver.Request, entry *metav1.ManagedFieldsEntry, obj runtime.Object) *fieldpath.Set {
	if isFreeholds(entry.Manager) || isPlugin(r) && entry.Manager == managers.Plugin || !isPlugin(r) && o.mayTake(entry.Manager) {
		return &fieldpath.Set{}
	}
	fields := o.fieldsOf(entry).Difference(mirrored)
	if !isPlugin(r) && o.capped(obj) {
		fields = fields.Difference(fieldpath.NewSet(numberOfReplicas))
	}
	return fields
}

// mirrored is what the API server keeps equal to serviceAccountName, regardless of its owner.
var mirrored = fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "template", "spec", "serviceAccount"))

func isFreeholds(manager string) bool { return managers.ClassOf(manager, "") == managers.ClassFreehold }

// capped reports whether an object is a workload with more pods than one, of an MCPServer that has, or had, the transport stdio.
func (o *oracle) capped(obj runtime.Object) bool {
	replicas := replicasOf(obj)
	return replicas != nil && *replicas > 1 && o.stdio[access(obj).GetName()]
}

func isStdio(server runtime.Object) bool {
	content, ok := server.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	transport, _, _ := unstructured.NestedString(content.Object, "spec", "transport")
	return transport == string(v1beta1.TransportStdio)
}

// checkClaims holds an edit of managedFields against the rules: it changes no value, says which version it was made for, and takes
// nothing from another manager, nor gives it anything.
func (o *oracle) checkClaims(r *apiserver.Request, obj, old runtime.Object) {
	if !isGuarded(r.Body) {
		o.violated(r, "an edit of managedFields without a resourceVersion: %.300s", r.Body)
	}
	if old == nil {
		return
	}
	if r != o.s.mutated && !o.s.policy.concerns(r) && !sameButClaims(obj, old) {
		o.violated(r, "an edit of managedFields changed something else")
	}
	before, after := o.claimsOf(old), o.claimsOf(obj)
	for _, entry := range access(old).GetManagedFields() {
		had := o.protected(r, &entry, old)
		if had.Has(marks[0]) || had.Has(marks[1]) || entry.APIVersion == goneVersion {
			continue // It owns a copy, as no other manager writes these; or the API server stores nothing before the entry is dropped.
		}
		still := after[claim{entry.Manager, entry.Subresource, entry.Operation}]
		if still == nil {
			still = &fieldpath.Set{}
		}
		if lost := had.Difference(still); !lost.Empty() {
			o.violated(r, "fields were taken from %s: %s", entry.Manager, lost)
		}
	}
	for key, fields := range after {
		if isFreeholds(key.manager) && !isPlugin(r) || isPlugin(r) && slices.Contains(heirs, key.manager) {
			continue
		}
		if had := before[key]; had != nil {
			fields = fields.Difference(had)
		} else if key.manager == ownership.BeforeFirstApply && len(before) == 0 {
			continue // So does the API server at the first apply to an object without owners.
		}
		if !fields.Empty() {
			o.violated(r, "fields were given to %s: %s", key.manager, fields)
		}
	}
}

// isGuarded reports whether a JSON patch says which resourceVersion it was made for.
func isGuarded(patch []byte) bool {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if json.Unmarshal(patch, &operations) != nil {
		return false
	}
	for _, operation := range operations {
		version, _ := operation.Value.(string)
		if operation.Path == "/metadata/resourceVersion" && (operation.Op == "test" || operation.Op == "replace") && version != "" {
			return true
		}
	}
	return false
}

// sameButClaims reports whether two states differ in nothing but managedFields.
func sameButClaims(a, b runtime.Object) bool {
	return withoutClaims(a) == withoutClaims(b)
}

func withoutClaims(obj runtime.Object) string {
	obj = obj.DeepCopyObject()
	access(obj).SetManagedFields([]metav1.ManagedFieldsEntry{})
	access(obj).SetResourceVersion("")
	return text(obj)
}
