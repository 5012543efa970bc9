// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write testdata/atomic.txt and testdata/stored/applied anew")

const atomicFile = "testdata/atomic.txt"

// keyedList is a list in the pod's spec that server-side apply merges by keys, or as a set when it has none.
type keyedList struct {
	path string
	keys []string
}

// Each list of a pod's spec that server-side apply merges element by element is brought to one element of each key. The lists are read from
// the schema, so a new one fails here.
func TestMergedListsHaveOneElementOfEachKey(t *testing.T) {
	lists, _ := walkPodSpec(t)
	if len(lists) < 20 {
		t.Fatalf("the schema has %d such lists only", len(lists))
	}
	for _, list := range lists {
		t.Run(list.path, func(t *testing.T) {
			spec := &corev1.PodSpec{}
			document := synthesise(strings.Split(list.path, "."), list.keys)
			if err := json.Unmarshal(jsonOf(t, document), spec); err != nil {
				t.Fatal(err)
			}
			if err := applicable(t, document); err == nil || !strings.Contains(err.Error(), "duplicate") {
				t.Fatalf("the test itself is wrong: before merging, got error %v from %s", err, jsonOf(t, document))
			}
			r := &renderer{}
			r.canonicalise(spec)
			if len(r.problems) > 0 {
				t.Fatalf("problems: %v", r.problems)
			}
			config, err := podSpecConfig(spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := applicable(t, config); err != nil {
				t.Errorf("after merging: %v", err)
			}
		})
	}
}

// TestAtomicIsReviewed: apiDefaults is made from the list of all that is owned as a whole. Whoever updates
// Kubernetes and finds something new here looks up whether the API server fills anything in below it, adds
// that to apiDefaults, and runs the test with -update.
func TestAtomicIsReviewed(t *testing.T) {
	_, atomic := walkPodSpec(t)
	text := strings.Join(atomic, "\n") + "\n"
	if *update {
		if err := os.WriteFile(atomicFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reviewed, err := os.ReadFile(atomicFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(reviewed), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("lists and structs that are owned as a whole (-reviewed +schema):\n%s", diff)
	}
}

// What the table says is filled in where the user leaves it out, and kept where not.
func TestDefaultsAreFilledInWhereTheUserLeavesThemOut(t *testing.T) {
	for _, d := range apiDefaults {
		t.Run(d.path, func(t *testing.T) {
			path := strings.Split(strings.ReplaceAll(d.path, "[]", ""), ".")
			leaf := path[len(path)-1]
			for _, list := range []string{"containers", "initContainers"} {
				if path[0] == "volumes" && list == "initContainers" {
					continue
				}
				at := slices.Clone(path)
				if at[0] == "containers" {
					at[0] = list
				}
				for given, want := range map[string]string{"": d.value, other(leaf): other(leaf)} {
					if got := fillAt(t, strings.Split(d.path, "."), at, given); got != want {
						t.Errorf("%s given as %q: got %q, want %q", strings.Join(at, "."), given, got, want)
					}
				}
			}
		})
	}
}

// other is a value of a field that is not its default.
func other(leaf string) string {
	return map[string]string{
		"protocol": "UDP", "apiVersion": "v2", "optional": "true", "expirationSeconds": "600", "defaultMode": "256",
	}[leaf]
}

// fillAt makes a pod's spec with the struct around a field, gives the field a value, and returns the value
// that is applied.
func fillAt(t *testing.T, marked, at []string, given string) string {
	t.Helper()
	leaf := at[len(at)-1]
	inner := map[string]any{}
	if given != "" {
		var value any = given
		if leaf == "optional" || leaf == "expirationSeconds" || leaf == "defaultMode" {
			value = json.RawMessage(given)
		}
		inner[leaf] = value
	}
	if leaf == "protocol" {
		inner["containerPort"] = 1
	}
	var document any = inner
	for i := len(at) - 2; i >= 0; i-- {
		if strings.HasSuffix(marked[i], "[]") {
			if m := document.(map[string]any); m["name"] == nil && leaf != "protocol" || i == 0 {
				m["name"] = "x"
			}
			document = []any{document}
		}
		document = map[string]any{at[i]: document}
	}
	spec := &corev1.PodSpec{}
	if err := json.Unmarshal(jsonOf(t, document), spec); err != nil {
		t.Fatalf("%s: %v", jsonOf(t, document), err)
	}
	r := &renderer{}
	r.canonicalise(spec)
	config, err := podSpecConfig(spec)
	if err != nil {
		t.Fatal(err)
	}
	tree := treeOf(t, config)
	for _, key := range at {
		tree = tree.(map[string]any)[key]
		if list, ok := tree.([]any); ok {
			tree = list[0]
		}
	}
	return strings.Trim(string(jsonOf(t, tree)), `"`)
}

// applicable tells whether server-side apply accepts a pod's spec in a StatefulSet.
func applicable(t *testing.T, spec any) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"spec": map[string]any{"template": map[string]any{"spec": treeOf(t, spec)}},
	}}
	_, err := typeConverter().ObjectToTyped(object)
	return err
}

// synthesise makes a document that has two equal elements in the list at a path, and one element in each list
// above it.
func synthesise(path []string, keys []string) any {
	field, isList := strings.CutSuffix(path[0], "[]")
	if len(path) > 1 {
		inner := synthesise(path[1:], keys)
		if isList {
			element := inner.(map[string]any)
			switch field {
			case "containers", "initContainers":
				element["name"] = "x"
			case "volumeMounts":
				element["mountPath"] = "x"
			}
			inner = []any{element}
		}
		return map[string]any{field: inner}
	}
	element := any("x")
	if field == "values" {
		element = 1
	}
	if len(keys) > 0 {
		m := map[string]any{}
		for _, key := range keys {
			m[key] = "x"
		}
		if _, ok := m["containerPort"]; ok {
			m["containerPort"], m["protocol"] = 1, "TCP"
		}
		element = m
	}
	return map[string]any{field: []any{element, element}}
}

// walkPodSpec returns the keyed lists below a pod template's spec, and the lists, maps and structs that are
// owned as a whole, the outermost only. Ephemeral containers are left out, as a template cannot have any, and so is metadata of a
// volume claim, as it can have labels and annotations only.
func walkPodSpec(t *testing.T) (lists []keyedList, atomic []string) {
	t.Helper()
	typed, err := typeConverter().ObjectToTyped(&appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := typed.Schema()
	var walk func(path string, ref schema.TypeRef, whole bool)
	walk = func(path string, ref schema.TypeRef, whole bool) {
		if path == "ephemeralContainers" || strings.HasSuffix(path, "volumeClaimTemplate.metadata") {
			return
		}
		atom, ok := s.Resolve(ref)
		if !ok {
			t.Fatalf("%s has no type", path)
		}
		isAtomic := atom.Map != nil && atom.Map.ElementRelationship == schema.Atomic ||
			atom.List != nil && atom.List.ElementRelationship == schema.Atomic
		if isAtomic && !whole {
			atomic = append(atomic, path)
		}
		whole = whole || isAtomic
		switch {
		case atom.Map != nil:
			for _, field := range atom.Fields {
				walk(strings.TrimPrefix(path+"."+field.Name, "."), field.Type, whole)
			}
		case atom.List != nil:
			if !isAtomic {
				lists = append(lists, keyedList{path, atom.Keys})
			}
			walk(path+"[]", atom.List.ElementType, whole)
		}
	}
	name := "io.k8s.api.core.v1.PodSpec"
	walk("", schema.TypeRef{NamedType: &name}, false)
	slices.Sort(atomic)
	return lists, atomic
}
