// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// components returns the objects of an MCPServer.
type components map[harness.Component]*unstructured.Unstructured

func (w *world) components(t *testing.T, server *v1beta1.MCPServer) components {
	t.Helper()
	all := components{}
	for _, component := range harness.ComponentsOf(server) {
		all[component] = w.MustObject(t, component, server.Name)
	}
	return all
}

// entriesOf are the entries of managedFields for which want returns true.
func entriesOf(object *unstructured.Unstructured, want func(class managers.ManagerClass) bool) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return !want(managers.ClassOf(e.Manager, e.Subresource))
	})
}

func ofToolHive(class managers.ManagerClass) bool { return class == managers.ClassToolHive }

func ofFreehold(class managers.ManagerClass) bool { return class == managers.ClassFreehold }

// ofOthers are the entries of those who are neither.
func ofOthers(class managers.ManagerClass) bool { return !ofToolHive(class) && !ofFreehold(class) }

// checkToolHiveGone checks that ToolHive owns nothing of an MCPServer any more.
func (p components) checkToolHiveGone(t *testing.T) {
	t.Helper()
	for component, object := range p {
		for _, entry := range entriesOf(object, ofToolHive) {
			t.Errorf("%s of ToolHive is left on the %s: %s", entryName(&entry), component, entry.FieldsV1.GetRawString())
		}
	}
}

// checkOthers checks that whatever others own of an MCPServer is as it was, to the byte. What the controllers write as
// status is not looked at, which moves with the pods.
func (p components) checkOthers(t *testing.T, m *member, before components) {
	t.Helper()
	told := 0
	for component, object := range p {
		was, is := claimsOfOthers(t, before[component], m.settledBy[component]), claimsOfOthers(t, object, m.settledBy[component])
		told += len(is)
		if !slices.Equal(was, is) {
			t.Errorf("others owned of the %s\n%s\nand now\n%s", component, strings.Join(was, "\n"), strings.Join(is, "\n"))
		}
	}
	t.Logf("others have %d claims, which are as they were", told)
}

func claimsOfOthers(t *testing.T, object *unstructured.Unstructured, but string) (claims []string) {
	t.Helper()
	for _, entry := range entriesOf(object, ofOthers) {
		if entry.Subresource == "status" || entry.Manager == but {
			continue
		}
		set, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		typed, err := schemaOf(object).ObjectToTyped(object)
		if err != nil {
			t.Fatal(err)
		}
		values := typed.ExtractItems(set.Leaves())
		claims = append(claims, fmt.Sprintf("%s since %v: %s\n  %s", entryName(&entry), entry.Time, entry.FieldsV1.GetRawString(),
			text(values.AsValue().Unstructured())))
	}
	return claims
}

var (
	coreSchema     = applyconfigurations.NewTypeConverter(scheme.Scheme)
	toolHiveSchema = toolhiveac.NewTypeConverter(toolhivescheme.Scheme)
)

func schemaOf(object *unstructured.Unstructured) managedfields.TypeConverter {
	if object.GetKind() == v1beta1.MCPServerKind {
		return toolHiveSchema
	}
	return coreSchema
}

// checkTwin checks that the MCPServer is as one with the same spec that Freehold has made: every writer owns just the
// same fields, and all values are the same. What others own, and what m.free tells, is left out.
func (p components) checkTwin(t *testing.T, m *member, twin components) {
	t.Helper()
	for component, taken := range p {
		others := owned(t, taken, ofOthers).Union(owned(t, twin[component], ofOthers))
		checkEntries(t, component, taken, twin[component], others)
		for _, c := range changes(bare(t, twin[component], others), bare(t, taken, others)) {
			if c.path != m.free[component] {
				t.Errorf("the %s differs from a new one at %s", component, c)
			}
		}
	}
}

func owned(t *testing.T, object *unstructured.Unstructured, by func(managers.ManagerClass) bool) *fieldpath.Set {
	t.Helper()
	all := &fieldpath.Set{}
	for _, entry := range entriesOf(object, by) {
		set, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		all = all.Union(set)
	}
	return all
}

// checkEntries compares what Freehold's writers own. A field that somebody else holds need not be owned beside him.
func checkEntries(t *testing.T, component harness.Component, taken, twin *unstructured.Unstructured, others *fieldpath.Set) {
	t.Helper()
	left := map[string]bool{}
	others.Iterate(func(path fieldpath.Path) { left[neutral(path.String())] = true })
	of := func(object *unstructured.Unstructured) map[string]bool {
		found := map[string]bool{}
		for _, entry := range entriesOf(object, ofFreehold) {
			set, err := ownership.Fields(&entry)
			if err != nil {
				t.Fatal(err)
			}
			set.Iterate(func(path fieldpath.Path) { found[entryName(&entry)+" "+neutral(path.String())] = true })
		}
		return found
	}
	is, want := of(taken), of(twin)
	for _, field := range sortedKeys(is) {
		if !want[field] && !aboutTakeover(field) {
			t.Errorf("%s: %s would not be owned of a new one", component, field)
		}
	}
	for _, field := range sortedKeys(want) {
		if path := field[strings.Index(field, " .")+1:]; !is[field] && !left[path] {
			t.Errorf("%s: %s would be owned of a new one", component, field)
		}
	}
}

// takeoverConditions are those that only an MCPServer has that was taken over, or for which a conflict was settled.
var takeoverConditions = []string{
	v1beta1.ConditionTakenOver, v1beta1.ConditionFieldsTaken, v1beta1.ConditionFieldsYielded,
}

// restartMark is that of kubectl rollout restart, which ToolHive's proxyrunner owns beside kubectl, see render.PreserveBackend.
const restartMark = managers.Backend + " Apply .spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt"

func aboutTakeover(field string) bool {
	return strings.Contains(field, v1beta1.AnnotationTakeRecord) || strings.Contains(field, v1beta1.AnnotationTakeoverProgress) || field == restartMark || slices.ContainsFunc(takeoverConditions, func(c string) bool {
		return strings.Contains(field, fmt.Sprintf(`.status.conditions[type=%q]`, c))
	})
}

// uids and checksums are not the same in any two objects.
var (
	uids    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	sources = regexp.MustCompile(`<uid>/[0-9]+`)
	// versions are those of what an MCPServer refers to.
	versions  = regexp.MustCompile(`<generation>@\d+`)
	checksums = regexp.MustCompile(`[0-9a-f]{64}`)
	processes = regexp.MustCompile(`("` + regexp.QuoteMeta(v1beta1.AnnotationAttachedTo) + `":)"[^"]*"`)
	gates     = regexp.MustCompile(`("` + regexp.QuoteMeta(v1beta1.AnnotationGeneration) + `":)"[^"]*"`)
)

// neutral replaces what is not the same in any two objects.
func neutral(text string) string {
	text = sources.ReplaceAllString(uids.ReplaceAllString(text, "<uid>"), "<uid>/<generation>")
	text = versions.ReplaceAllString(text, "<generation>@<version>")
	text = gates.ReplaceAllString(processes.ReplaceAllString(text, `$1"<process>"`), `$1"<gate>"`)
	return checksums.ReplaceAllString(text, "<checksum>")
}

// bare is an object without what others own of it, and without what is never the same in two objects.
func bare(t *testing.T, object *unstructured.Unstructured, others *fieldpath.Set) *unstructured.Unstructured {
	t.Helper()
	typed, err := schemaOf(object).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	// Of maps that others have something in, only that; of lists, what they have added.
	removed := others.Leaves()
	others.Difference(owned(t, object, ofFreehold)).Iterate(func(path fieldpath.Path) {
		if path[len(path)-1].Key != nil {
			removed.Insert(path.Copy())
		}
	})
	fields, ok := typed.RemoveItems(removed).AsValue().Unstructured().(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", object.GetName())
	}
	left := (&unstructured.Unstructured{Object: fields}).DeepCopy()
	for _, path := range [][]string{
		{"metadata", "creationTimestamp"},
		{"metadata", "managedFields"},
		{"metadata", "resourceVersion"},
		{"metadata", "generation"},
		{"spec", "clusterIPs"},
		{"status", "observedGeneration"},
		{"metadata", "annotations", v1beta1.AnnotationTakeRecord}, // of a conflict that was settled
		{"metadata", "annotations", v1beta1.AnnotationTakeoverProgress},
	} {
		unstructured.RemoveNestedField(left.Object, path...)
	}
	if ip, _, _ := unstructured.NestedString(left.Object, "spec", "clusterIP"); ip != "None" {
		unstructured.RemoveNestedField(left.Object, "spec", "clusterIP")
	}
	if object.GetKind() == v1beta1.MCPServerKind {
		delete(left.Object, "spec") // It was created with the spec of the other.
		bareConditions(t, left)
	}
	plain, err := json.Marshal(withoutEmpty(left.Object))
	if err != nil {
		t.Fatal(err)
	}
	neutralized := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(neutral(strings.ReplaceAll(string(plain), object.GetNamespace(), "<namespace>"))), &neutralized.Object); err != nil {
		t.Fatal(err)
	}
	return neutralized
}

func bareConditions(t *testing.T, server *unstructured.Unstructured) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(server.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	conditions = slices.DeleteFunc(conditions, func(item any) bool {
		condition, _ := item.(map[string]any)
		kind, _ := condition["type"].(string)
		return slices.Contains(takeoverConditions, kind)
	})
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok {
			delete(condition, "lastTransitionTime")
			delete(condition, "observedGeneration")
			if condition["type"] == v1beta1.ConditionRolledOut {
				delete(condition, "message") // It names the image, which somebody may have changed.
			}
		}
	}
	if err := unstructured.SetNestedSlice(server.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
}

// withoutEmpty removes fields that hold nothing: where all of a map is somebody else's, the map itself is left.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if v[key] = withoutEmpty(field); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return value
}
