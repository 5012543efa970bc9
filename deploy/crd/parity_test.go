// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// toolHiveVersion is the release whose CustomResourceDefinitions ours agree with.
const toolHiveVersion = "v0.63.0"

// knownDifference is an entry of differences.yaml.
type knownDifference struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// difference is one place where two documents do not agree. A side that has nothing there is "absent".
type difference struct {
	path, ours, theirs string
}

// TestParityWithUpstream compares what the API server makes of the two definitions: names, versions, schema,
// defaults, CEL rules, printer columns, subresources, labels. Only descriptions are ours.
func TestParityWithUpstream(t *testing.T) {
	known := readKnownDifferences(t)
	for _, definition := range all(t) {
		t.Run(definition.Name, func(t *testing.T) {
			differences := compareCRDs(t, []byte(definition.YAML), toolHiveDefinition(t, toolHiveVersion, definition.Name))
			for _, problem := range judge(differences, known[definition.Name]) {
				t.Error(problem)
			}
		})
	}
}

// TestEveryKindHasADefinition compares what the definitions serve with the types under apis/.
func TestEveryKindHasADefinition(t *testing.T) {
	types := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(types), v1beta1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for kind, of := range types.AllKnownTypes() {
		if strings.HasPrefix(of.PkgPath(), "github.com/freehold-dev/") && !strings.HasSuffix(kind.Kind, "List") {
			want = append(want, kind.String())
		}
	}
	var got []string
	for _, definition := range all(t) {
		object, err := definition.Object()
		if err != nil {
			t.Fatal(err)
		}
		if object.GetName() != definition.Name {
			t.Errorf("the file of %s has %s", definition.Name, object.GetName())
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		for version := range schemas(object) {
			got = append(got, schema.GroupVersionKind{Group: group, Version: version, Kind: kind}.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of types (-) and of definitions (+):\n%s", diff)
	}
}

// Helm and Flux take an object without a status for done. The generation -1 says that no operator has looked at it yet.
func TestANewObjectSaysThatNoOperatorHasLookedAtIt(t *testing.T) {
	for _, definition := range all(t) {
		object, err := definition.Object()
		if err != nil {
			t.Fatal(err)
		}
		for version, schema := range schemas(object) {
			said, _, _ := unstructured.NestedFieldNoCopy(schema, "properties", "status", "default")
			if diff := cmp.Diff(map[string]any{"observedGeneration": float64(-1)}, said); diff != "" {
				t.Errorf("default of the status in %s %s (-want +got):\n%s", definition.Name, version, diff)
			}
		}
	}
}

func all(t *testing.T) []Definition {
	t.Helper()
	definitions, err := All()
	if err != nil || len(definitions) == 0 {
		t.Fatalf("there are %d definitions: %v", len(definitions), err)
	}
	return definitions
}

// TestKnownDifferencesAreExplained holds differences.yaml to its form even where ToolHive's module cannot be had.
func TestKnownDifferencesAreExplained(t *testing.T) {
	definitions := all(t)
	for name, entries := range readKnownDifferences(t) {
		if !slices.ContainsFunc(definitions, func(d Definition) bool { return d.Name == name }) {
			t.Errorf("there is no definition %s", name)
		}
		seen := map[string]bool{}
		for i, entry := range entries {
			if entry.Path == "" || strings.TrimSpace(entry.Reason) == "" {
				t.Errorf("%s: entry %d needs a path and a reason, has %+v", name, i, entry)
			}
			if seen[entry.Path] {
				t.Errorf("%s: %s is listed twice", name, entry.Path)
			}
			seen[entry.Path] = true
		}
	}
}

// The comparison sees what matters to the API server and nothing else.
func TestParityNoticesWhatMattersToTheAPIServer(t *testing.T) {
	cases := []struct {
		name     string
		old, new string
		want     []string
	}{
		{name: "nothing changed", old: "", new: "", want: nil},
		{
			name: "description of a field", want: nil,
			old: "description: spec is what the user asks for.", new: "description: something else.",
		},
		{
			name: "property called like the word description",
			old:  "message:\n                description: message explains the phase.",
			new:  "description:\n                description: message explains the phase.",
			want: []string{
				"spec/versions/[0]/schema/openAPIV3Schema/properties/status/properties/description",
				"spec/versions/[0]/schema/openAPIV3Schema/properties/status/properties/message",
				"spec/versions/[1]/schema/openAPIV3Schema/properties/status/properties/description",
				"spec/versions/[1]/schema/openAPIV3Schema/properties/status/properties/message",
			},
		},
		{
			name: "default", old: "default: ClientIP", new: "default: None",
			want: []string{
				"spec/versions/[0]/schema/openAPIV3Schema/properties/spec/properties/sessionAffinity/default",
				"spec/versions/[1]/schema/openAPIV3Schema/properties/spec/properties/sessionAffinity/default",
			},
		},
		{
			name: "list type", old: "x-kubernetes-list-map-keys:\n                - type", new: "x-kubernetes-list-map-keys:\n                - reason",
			want: []string{
				"spec/versions/[0]/schema/openAPIV3Schema/properties/status/properties/conditions/x-kubernetes-list-map-keys/[0]",
				"spec/versions/[1]/schema/openAPIV3Schema/properties/status/properties/conditions/x-kubernetes-list-map-keys/[0]",
			},
		},
		{
			name: "category", old: "    - toolhive\n", new: "    - toolhive\n    - all\n",
			want: []string{"spec/names/categories/[1]"},
		},
		{
			name: "label", old: "auto-migrate-storage-version: \"true\"", new: "auto-migrate-storage-version: \"false\"",
			want: []string{"metadata/labels/toolhive.stacklok.dev~1auto-migrate-storage-version"},
		},
		{name: "scope", old: "scope: Namespaced", new: "scope: Cluster", want: []string{"spec/scope"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if !strings.Contains(MCPServers, tc.old) {
				t.Fatalf("the definition does not contain %q any more", tc.old)
			}
			changed := strings.ReplaceAll(MCPServers, tc.old, tc.new)
			var got []string
			for _, d := range compareCRDs(t, []byte(MCPServers), []byte(changed)) {
				got = append(got, d.path)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("differences:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestOnlyListedDifferencesAreAccepted(t *testing.T) {
	found := []difference{{path: "a", ours: "1", theirs: "2"}}
	cases := []struct {
		name  string
		found []difference
		known []knownDifference
		want  int
	}{
		{name: "listed", found: found, known: []knownDifference{{Path: "a", Reason: "r"}}, want: 0},
		{name: "not listed", found: found, known: nil, want: 1},
		{name: "stale", found: nil, known: []knownDifference{{Path: "a", Reason: "r"}}, want: 1},
		{name: "other path", found: found, known: []knownDifference{{Path: "b", Reason: "r"}}, want: 2},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := judge(tc.found, tc.known); len(got) != tc.want {
				t.Errorf("got %d problems, want %d: %q", len(got), tc.want, got)
			}
		})
	}
}

// judge returns a sentence for each difference that is not known and each known one that is gone.
func judge(found []difference, known []knownDifference) []string {
	listed := map[string]bool{}
	for _, k := range known {
		listed[k.Path] = true
	}
	var problems []string
	present := map[string]bool{}
	for _, d := range found {
		present[d.path] = true
		if !listed[d.path] {
			problems = append(problems, fmt.Sprintf("%s: ours is %s, ToolHive's is %s; if this is on purpose, list it in differences.yaml", d.path, d.ours, d.theirs))
		}
	}
	for _, k := range known {
		if !present[k.Path] {
			problems = append(problems, fmt.Sprintf("%s: listed in differences.yaml, but there is no difference any more", k.Path))
		}
	}
	return problems
}

func readKnownDifferences(t *testing.T) map[string][]knownDifference {
	t.Helper()
	data, err := os.ReadFile("differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var known map[string][]knownDifference
	if err := yaml.UnmarshalStrict(data, &known); err != nil {
		t.Fatal(err)
	}
	return known
}

func compareCRDs(t *testing.T, ours, theirs []byte) []difference {
	t.Helper()
	return diff(nil, readCRD(t, ours), readCRD(t, theirs))
}

func readCRD(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	if crd["kind"] != "CustomResourceDefinition" {
		t.Fatalf("kind is %v, want CustomResourceDefinition", crd["kind"])
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		t.Fatal("the definition has no versions")
	}
	for _, version := range versions {
		schema, _ := version.(map[string]any)["schema"].(map[string]any)
		root, _ := schema["openAPIV3Schema"].(map[string]any)
		if len(root) == 0 {
			t.Fatal("a version has no schema")
		}
		dropDescriptions(root)
	}
	return crd
}

// dropDescriptions removes the descriptions of a schema, but no property that happens to be called so.
func dropDescriptions(schema map[string]any) {
	delete(schema, "description")
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, property := range properties {
			dropDescriptions(property.(map[string]any))
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if sub, ok := schema[key].(map[string]any); ok {
			dropDescriptions(sub)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if subs, ok := schema[key].([]any); ok {
			for _, sub := range subs {
				dropDescriptions(sub.(map[string]any))
			}
		}
	}
}

// diff walks two decoded documents and returns the places where they part, in a stable order.
func diff(path []string, ours, theirs any) []difference {
	switch our := ours.(type) {
	case map[string]any:
		if their, ok := theirs.(map[string]any); ok {
			keys := maps.Clone(our)
			maps.Copy(keys, their)
			var all []difference
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				all = append(all, diffItem(append(slices.Clone(path), strings.ReplaceAll(key, "/", "~1")), our, their, key)...)
			}
			return all
		}
	case []any:
		if their, ok := theirs.([]any); ok {
			var all []difference
			for i := range max(len(our), len(their)) {
				at := append(slices.Clone(path), fmt.Sprintf("[%d]", i))
				switch {
				case i >= len(our):
					all = append(all, difference{path: strings.Join(at, "/"), ours: "absent", theirs: show(their[i])})
				case i >= len(their):
					all = append(all, difference{path: strings.Join(at, "/"), ours: show(our[i]), theirs: "absent"})
				default:
					all = append(all, diff(at, our[i], their[i])...)
				}
			}
			return all
		}
	}
	if reflect.DeepEqual(ours, theirs) {
		return nil
	}
	return []difference{{path: strings.Join(path, "/"), ours: show(ours), theirs: show(theirs)}}
}

func diffItem(path []string, ours, theirs map[string]any, key string) []difference {
	our, inOurs := ours[key]
	their, inTheirs := theirs[key]
	switch {
	case !inOurs:
		return []difference{{path: strings.Join(path, "/"), ours: "absent", theirs: show(their)}}
	case !inTheirs:
		return []difference{{path: strings.Join(path, "/"), ours: show(our), theirs: "absent"}}
	}
	return diff(path, our, their)
}

func show(v any) string {
	const longest = 120
	text := fmt.Sprintf("%v", v)
	if len(text) > longest {
		return text[:longest] + "..."
	}
	return text
}
