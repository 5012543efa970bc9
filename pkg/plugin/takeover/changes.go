// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// Change is a field that gets another value, for programs as well.
type Change struct {
	// Path of the field. Behind the RunConfig's text come the paths within it, such as
	// .data.runconfig.json{.target_host}.
	Path string `json:"path"`
	// Before and After are its values; left out for none.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// Restarts is set when the field is one of the pods, which are replaced.
	Restarts bool `json:"restarts,omitempty"`
	// Why it changes, where that is not plain.
	Why string `json:"why,omitempty"`
}

// Changes returns the fields that differ between two states of an object, except its status and the counters of the API
// server, in the order of their paths.
func Changes(schema managedfields.TypeConverter, before, after *unstructured.Unstructured) ([]Change, error) {
	was, err := content(schema, before)
	if err != nil {
		return nil, err
	}
	is, err := content(schema, after)
	if err != nil {
		return nil, err
	}
	compared, err := was.Compare(is)
	if err != nil {
		return nil, err
	}
	fields := map[string]fieldpath.Path{}
	compared.Added.Union(compared.Removed).Union(compared.Modified).Iterate(func(path fieldpath.Path) {
		path = whole(before.Object, after.Object, path).Copy()
		if !keyed[path.String()] {
			fields[path.String()] = path
		}
	})
	changes := []Change{}
	for _, text := range slices.Sorted(maps.Keys(fields)) {
		path := fields[text]
		change := Change{Path: text, Before: ownership.ValueAt(before.Object, path), After: ownership.ValueAt(after.Object, path)}
		if reflect.DeepEqual(change.Before, change.After) {
			continue // Something above a field that is listed itself.
		}
		change.Restarts = strings.HasPrefix(text, ".spec.template.")
		change.Why = reasons[text]
		if inside := within(change); inside != nil {
			changes = append(changes, inside...)
			continue
		}
		changes = append(changes, change)
	}
	// Owners are identified by their UIDs, which say nothing: the one that goes comes first.
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return changes, nil
}

func sortKey(c Change) string {
	const owners = ".metadata.ownerReferences["
	switch {
	case !strings.HasPrefix(c.Path, owners):
		return c.Path
	case c.Before != nil:
		return owners + "1"
	default:
		return owners + "2"
	}
}

// whole returns the shortest prefix of a path at which one of two objects has nothing: a value that is added or removed
// as a whole is one change.
func whole(before, after map[string]any, path fieldpath.Path) fieldpath.Path {
	for i := range path {
		above := path[:i+1]
		if i+1 < len(path) && keyed[above.String()] {
			continue // Its members are of different owners, so each is a change of its own.
		}
		if ownership.ValueAt(before, above) == nil || ownership.ValueAt(after, above) == nil {
			return above
		}
	}
	return path
}

// keyed are the maps and lists of an object's metadata.
var keyed = map[string]bool{".metadata.annotations": true, ".metadata.labels": true, ".metadata.ownerReferences": true}

func content(schema managedfields.TypeConverter, object *unstructured.Unstructured) (*typed.TypedValue, error) {
	copied := object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(copied.Object, "status")
	return schema.ObjectToTyped(copied, typed.AllowDuplicates)
}

// within takes a change of the RunConfig's text apart; nil for any other.
func within(c Change) []Change {
	const text = ".data." + runconfig.Key
	before, isText := c.Before.(string)
	after, both := c.After.(string)
	if c.Path != text || !isText || !both {
		return nil
	}
	var was, is map[string]any
	if json.Unmarshal([]byte(before), &was) != nil || json.Unmarshal([]byte(after), &is) != nil {
		return nil
	}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	var inside []Change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(was[key], is[key]) {
			inside = append(inside, Change{Path: text + "{." + key + "}", Before: was[key], After: is[key], Why: reasons["{."+key+"}"]})
		}
	}
	return inside
}

var gatePath = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)

// reasons are why fields change that ToolHive has set to something else.
var reasons = map[string]string{
	gatePath.String(): "no proxyrunner is to write the StatefulSet, and the runner's generation never moves",
	".spec.template.metadata.annotations." + v1beta1.AnnotationRunConfigChecksum:                     "the RunConfig changes",
	".spec.template.metadata.annotations." + v1beta1.AnnotationAttachedTo:                            "the proxy starts anew when the process does that it is attached to",
	`.spec.template.spec.containers[name="toolhive"].args`:                                           "the operator makes the backend's pods, so the runner needs no template for them",
	`.spec.template.spec.containers[name="toolhive"].lifecycle`:                                      "a proxy that is to stop serves until the nodes know",
	`.spec.template.spec.containers[name="toolhive"].env[name="THV_MCPSERVER_GENERATION"].value`:     "it is always below the gate of the backend",
	`.spec.template.spec.containers[name="toolhive"].env[name="THV_MCPSERVER_GENERATION"].valueFrom`: "it is always below the gate of the backend",
	`.spec.template.spec.containers[name="toolhive"].env[name="OPERATOR_OPENSHIFT"]`:                 "the runner is told the platform, and does not ask",
	"{.target_host}":          "a runner that does not write is to know where the backend is",
	"{.mcpserver_generation}": "it never moves",
	".rules":                  "the runner does not write",
	".spec.selector":          "pods of other workloads have the label app as well",
}

// Restarts reports whether some changes replace the pods of a workload.
func Restarts(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Restarts })
}

// IsOnDelete reports whether Kubernetes replaces no pod of a workload by itself when its template changes.
func IsOnDelete(workload *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(workload.Object, "spec", "updateStrategy", "type")
	return strategy == string(appsv1.OnDeleteStatefulSetStrategyType)
}

// Pods returns the purpose of a workload's pods; empty for other objects.
func Pods(ref apply.ObjectRef) string {
	switch ref.Kind.Kind {
	case "Deployment":
		return "proxy"
	case "StatefulSet":
		return "backend"
	}
	return ""
}
