// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Return is one object, or the status of one, that is handed back to ToolHive. It takes three requests, none of which
// forces anything: an edit of managedFields by which the plugin gets all that the operator's writers own of it; an
// apply by which the plugin sets what ToolHive needs to be different, and drops what ToolHive does not know; and an
// edit by which the plugin's claim becomes ToolHive's. The object alone shows what is left to do, so that it goes on
// from wherever it was interrupted; and since the plugin holds the operator's marks meanwhile, an operator that is
// started again instead takes the object back.
type Return struct {
	Ref         apply.ObjectRef
	Subresource string
	// Live is the object as it was found.
	Live *unstructured.Unstructured
	// To is ToolHive's manager.
	To string

	change func(config map[string]any)
}

// Handback returns what is to be handed back of an MCPServer, in order. The workload of the backend comes first, while
// the operator's proxyrunners may not write; the right to write comes last.
func Handback(server *unstructured.Unstructured, children []*unstructured.Unstructured) []Return {
	var set *unstructured.Unstructured
	for _, child := range children {
		if child.GetKind() == managers.StatefulSet.Kind {
			set = child
		}
	}
	var all []Return
	for _, child := range children {
		r := Return{Ref: RefOf(child), Live: child, To: managers.ToolHiveOperator, change: func(map[string]any) {}}
		switch {
		case r.Ref.Kind == managers.StatefulSet:
			r.To = managers.ToolHiveRunner
			r.change = func(config map[string]any) { openGate(config, server.GetGeneration()) }
		case isBackendService(r.Ref, server.GetName()):
			r.To = managers.ToolHiveRunner
			r.change = func(config map[string]any) { giveTo(config, set) }
		case r.Ref.Kind == managers.Role:
			r.change = func(config map[string]any) { config["rules"] = toolHiveRules(server) }
		}
		all = append(all, r)
	}
	all = append(slices.DeleteFunc(all, isDone), HandbackAlone(server)...)
	slices.SortStableFunc(all, func(a, b Return) int { return a.place() - b.place() })
	return all
}

// HandbackAlone returns what is to be handed back of one object of ToolHive's API, in order: its status and itself, without
// its children.
func HandbackAlone(object *unstructured.Unstructured) []Return {
	whole := Return{Ref: RefOf(object), Live: object, To: managers.ToolHiveOperator, change: func(map[string]any) {}}
	status := whole
	status.Subresource, status.change = "status", dropConditions
	if whole.Ref.Kind == managers.MCPServer {
		whole.change = func(config map[string]any) { answerRestart(config, object) }
	}
	return slices.DeleteFunc([]Return{status, whole}, isDone)
}

// RefOf names an object.
func RefOf(object *unstructured.Unstructured) apply.ObjectRef {
	return apply.NewObjectRef(object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName())
}

func isBackendService(ref apply.ObjectRef, server string) bool {
	return ref.Kind == managers.ServiceKind && (ref.Name == inventory.BackendService.Name(server) || ref.Name == inventory.HeadlessService.Name(server))
}

// place returns the position of an object in the order.
func (r *Return) place() int {
	switch {
	case r.Ref.Kind == managers.StatefulSet:
		return 0
	case r.To == managers.ToolHiveRunner:
		return 1
	case r.Ref.Kind == managers.RoleBinding:
		return 3
	case r.Ref.Kind == managers.Role:
		return 4
	case r.Ref.Kind == managers.MCPServer:
		return 5
	}
	return 2
}

// isDone reports whether neither the operator nor an interrupted run of the plugin owns anything.
func isDone(r Return) bool {
	return !slices.ContainsFunc(r.Live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		ours := managers.ClassOf(e.Manager, "") == managers.ClassFreehold || e.Manager == managers.Plugin
		return ours && e.Subresource == r.Subresource
	})
}

// Gather returns the JSON patch that passes to the plugin all that the operator's writers own; nil when they own nothing.
func (r *Return) Gather(live *unstructured.Unstructured, now time.Time) ([]byte, error) {
	from := func(o ownership.Owner) bool {
		return managers.ClassOf(o.Manager, "") == managers.ClassFreehold && o.Subresource == r.Subresource
	}
	edit, err := ownership.Inherit(live, now, from, ownership.Heir{
		Holder: ownership.Holder{Manager: managers.Plugin, Subresource: r.Subresource, APIVersion: live.GetAPIVersion()},
		Covers: r.covers(),
	})
	if err != nil || edit == nil {
		return nil, err
	}
	return edit.Patch(live)
}

// covers returns a function that reports which fields the plugin owns meanwhile.
func (r *Return) covers() func(path fieldpath.Path) bool {
	for _, w := range managers.HandbackWriters() {
		if w.Kind == r.Ref.Kind && w.Subresource == r.Subresource {
			return w.Claim.Covers
		}
	}
	return func(fieldpath.Path) bool { return false }
}

// Config returns the configuration that the plugin applies: all that it owns, as ToolHive needs it.
func (r *Return) Config(schema managedfields.TypeConverter, live *unstructured.Unstructured) (map[string]any, error) {
	own, err := ownership.Fields(ownership.ApplyEntry(live, managers.Plugin, r.Subresource))
	if err != nil {
		return nil, err
	}
	whole, err := schema.ObjectToTyped(live, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	config, ok := whole.ExtractItems(own.Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	if !ok {
		config = map[string]any{}
	}
	r.change(config)
	dropMarks(config)
	config["apiVersion"], config["kind"] = live.GetAPIVersion(), live.GetKind()
	for key, value := range map[string]string{
		"name": live.GetName(), "namespace": live.GetNamespace(), "uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(),
	} {
		if err := unstructured.SetNestedField(config, value, "metadata", key); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// Pass returns the JSON patch by which the plugin's claim becomes ToolHive's; nil when the plugin owns nothing.
func (r *Return) Pass(live *unstructured.Unstructured, now time.Time) ([]byte, error) {
	edit, err := ownership.Rename(live, ownership.Holder{Manager: managers.Plugin, Subresource: r.Subresource}, r.To, operations[r.To], now)
	if err != nil || edit == nil {
		return nil, err
	}
	return edit.Patch(live)
}

// Result returns the object as it will be, and the fields that others hold at another value, which keep it from being
// handed back.
func (r *Return) Result(schema managedfields.TypeConverter) (*unstructured.Unstructured, []apply.FieldConflict, error) {
	patch, err := r.Gather(r.Live, time.Time{})
	if err != nil {
		return nil, nil, err
	}
	gathered, err := ownership.Patched(r.Live, patch)
	if err != nil {
		return nil, nil, err
	}
	config, err := r.Config(schema, gathered)
	if err != nil {
		return nil, nil, err
	}
	want := (&unstructured.Unstructured{Object: config}).DeepCopy()
	want.SetUID("")
	want.SetResourceVersion("")
	merged, err := ownership.Merge(schema, nil, gathered, want, managers.Plugin, r.Subresource)
	if fields := apply.ContestedFields(err, managers.Plugin, r.Subresource, gathered); len(fields) > 0 {
		return nil, fields, nil
	}
	return merged, nil, err
}

// openGate lets the runners of ToolHive's operator, whose generation is the MCPServer's, write the StatefulSet; not the
// operator's, whose generation is 1, unless the MCPServer's is as well. A gate that ToolHive has set stays, and the
// pods with it.
func openGate(config map[string]any, generation int64) {
	where := []string{"spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration}
	text, found, _ := unstructured.NestedString(config, where...)
	if gate, err := strconv.ParseInt(text, 10, 64); !found || err == nil && gate <= generation {
		return
	}
	// Maps all the way down: it was found there.
	_ = unstructured.SetNestedField(config, strconv.FormatInt(generation, 10), where...)
}

// giveTo makes an object the StatefulSet's, as ToolHive's runner makes the Services of the backend. Two controllers would
// be refused.
func giveTo(config map[string]any, set *unstructured.Unstructured) {
	references, _, _ := unstructured.NestedSlice(config, "metadata", "ownerReferences")
	references = slices.DeleteFunc(references, func(r any) bool {
		reference, ok := r.(map[string]any)
		return ok && (reference["kind"] == v1beta1.MCPServerKind || reference["controller"] == true)
	})
	if set != nil {
		references = append(references, map[string]any{
			"apiVersion": set.GetAPIVersion(), "kind": set.GetKind(), "name": set.GetName(), "uid": string(set.GetUID()),
			"controller": true, "blockOwnerDeletion": true,
		})
	}
	if len(references) == 0 {
		unstructured.RemoveNestedField(config, "metadata", "ownerReferences")
		return
	}
	_ = unstructured.SetNestedSlice(config, references, "metadata", "ownerReferences")
}

// toolHiveRules returns the rights that ToolHive's operator gives an MCPServer's proxyrunner: to attach to a pod, which
// comes last, with transport stdio only.
func toolHiveRules(server *unstructured.Unstructured) []any {
	rule := func(group, resource string, verbs ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
	}
	rules := []any{
		rule("apps", "statefulsets", "get", "list", "watch", "create", "update", "patch", "delete"),
		rule("", "services", "get", "list", "watch", "create", "update", "patch", "delete"),
		rule("", "pods", "get", "list", "watch"),
		rule("", "pods/log", "get"),
		rule("", "configmaps", "get", "list", "watch"),
	}
	transport, _, _ := unstructured.NestedString(server.Object, "spec", "transport")
	if cmp.Or(transport, string(v1beta1.TransportStdio)) == string(v1beta1.TransportStdio) {
		rules = append(rules, rule("", "pods/attach", "create", "get"))
	}
	return rules
}

// answerRestart records that a restart which was asked of Freehold needs no answer of ToolHive's operator. It would restart the proxy
// once more than it does anyway; and where the restart is to be immediate, it would go no further than the deletion of pods, to which
// its chart gives it no right.
func answerRestart(config map[string]any, server *unstructured.Unstructured) {
	text := server.GetAnnotations()[v1beta1.AnnotationRestartedAt]
	asked, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return // ToolHive's operator passes it over as well.
	}
	answered, err := time.Parse(time.RFC3339, server.GetAnnotations()[v1beta1.AnnotationLastProcessedRestart])
	if err == nil && !asked.After(answered) {
		return
	}
	// Maps all the way down: what is extracted of a valid object.
	_ = unstructured.SetNestedField(config, text, "metadata", "annotations", v1beta1.AnnotationLastProcessedRestart)
}

// dropMarks removes the operator's annotations, and the label that says whose an object is. On a pod template they stay until ToolHive's
// operator writes it again: to remove them would restart the pods once more.
func dropMarks(config map[string]any) {
	for _, kind := range []string{"annotations", "labels"} {
		marks, _, _ := unstructured.NestedMap(config, "metadata", kind)
		maps.DeleteFunc(marks, func(key string, value any) bool {
			return strings.HasPrefix(key, v1beta1.AnnotationPrefix) || key == v1beta1.LabelAppManagedBy && value == v1beta1.AppManagedBy
		})
		if len(marks) == 0 {
			unstructured.RemoveNestedField(config, "metadata", kind)
			continue
		}
		_ = unstructured.SetNestedMap(config, marks, "metadata", kind)
	}
}

// dropConditions takes those away that ToolHive does not know, and would never change.
func dropConditions(config map[string]any) {
	conditions, found, _ := unstructured.NestedSlice(config, "status", "conditions")
	if !found {
		return
	}
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		name, _ := condition["type"].(string)
		return ok && slices.Contains(v1beta1.FreeholdConditions(), name)
	})
	if len(conditions) == 0 {
		unstructured.RemoveNestedField(config, "status", "conditions")
		return
	}
	_ = unstructured.SetNestedSlice(config, conditions, "status", "conditions")
}

// operations are those by which ToolHive's managers write.
var operations = map[string]metav1.ManagedFieldsOperationType{
	managers.ToolHiveOperator: metav1.ManagedFieldsOperationUpdate,
	managers.ToolHiveRunner:   metav1.ManagedFieldsOperationApply,
}
