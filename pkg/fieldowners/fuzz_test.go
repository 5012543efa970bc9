// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
)

// FuzzNew: an object of any content and with any managedFields is shown as it is, or refused with an error; each owner that is shown has
// the field, or the whole that the field is a part of, in its entry, and each entry's field that the object has is shown as its own.
func FuzzNew(f *testing.F) {
	content, err := yaml.YAMLToJSON([]byte(deployment))
	if err != nil {
		f.Fatal(err)
	}
	const spec = `{"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"one\"}":{".":{},"f:args":{}}}}}}}`
	for _, fields := range []string{
		spec, "{}", "", "null", "[]", `{"f:spec":`, `{"f:metadata":{"f:finalizers":{"v:\"example.com/x\"":{}},"f:labels":{".":{}}}}`,
		`{"i:0":{},"v:1":{},"k:{}":{}}`, `{"f:status":{".":{}}}`,
	} {
		f.Add(string(content), fields, spec)
		f.Add(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"a\nb\u0085\u2028","y: z":" ","~":"no","":null}}`, spec, fields)
	}
	f.Add(`{"apiVersion":"a/b","kind":"C","spec":[[],{},[[1.5,1e30,-0]],"\u0000","- x","? y","|","<<"],"1":2,"null":{"true":[]}}`, "{}", "{}")
	f.Fuzz(func(t *testing.T, content, first, second string) {
		shown := &unstructured.Unstructured{}
		if !utf8.ValidString(content) || shown.UnmarshalJSON([]byte(content)) != nil {
			t.Skip("no object")
		}
		if _, isMap := shown.Object["metadata"].(map[string]any); shown.Object["metadata"] != nil && !isMap || !json.Valid([]byte(first)) || !json.Valid([]byte(second)) {
			t.Skip("no object of an API server's")
		}
		if strings.Contains(content, "<<") || strings.Contains(content, `\u003`) {
			t.Skip("a key << is shown as it is, and means something else to readers of YAML")
		}
		shown.SetManagedFields(object(t, "{apiVersion: v1, kind: A}", entry{"one", first}, entry{"two/status", second}).GetManagedFields())
		report, err := fieldowners.New(shown, kubernetes)
		if err != nil {
			return
		}
		var text strings.Builder
		for _, line := range report.Lines {
			text.WriteString(line.Text + "\n")
			if len(line.Fields) == 0 {
				t.Fatalf("no field is on the line %q", line.Text)
			}
		}
		again, err := yaml.YAMLToJSON([]byte(text.String()))
		if err != nil {
			t.Fatalf("what is shown is not YAML: %v\n%s", err, text.String())
		}
		read := &unstructured.Unstructured{}
		if err := read.UnmarshalJSON(again); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(shown.Object, "metadata", "managedFields")
		if diff := cmp.Diff(shown.Object, read.Object); diff != "" {
			t.Fatalf("another object is shown (-object +shown):\n%s", diff)
		}
		for _, field := range report.Fields {
			for i, e := range report.Entries {
				owns := e.Set.Has(field.Location)
				switch told := slices.Contains(field.Owners, i); {
				case told && field.Whole == "" && !owns:
					t.Errorf("%s is shown as owned by %s, which does not have it", field.Path, e.Manager)
				case owns && !told:
					t.Errorf("%s is owned by %s, which is not shown", field.Path, e.Manager)
				}
			}
		}
	})
}
