// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
)

// pathOf reads a path as conflicts tell it. What is below a map of free keys is one key, dots and all.
func pathOf(t *testing.T, text string) fieldpath.Path {
	t.Helper()
	var path fieldpath.Path
	for rest := text; rest != ""; {
		if key, ok := strings.CutPrefix(rest, "["); ok {
			fields, below, _ := strings.Cut(key, "]")
			var list value.FieldList
			for field := range strings.SplitSeq(fields, ",") {
				name, encoded, _ := strings.Cut(field, "=")
				decoded, err := value.FromJSON([]byte(encoded))
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, value.Field{Name: name, Value: decoded})
			}
			path, rest = append(path, fieldpath.PathElement{Key: &list}), below
			continue
		}
		name := strings.TrimPrefix(rest, ".")
		end := strings.IndexAny(name, ".[")
		above := ""
		if len(path) > 0 {
			above = ptr.Deref(path[len(path)-1].FieldName, "")
		}
		if end < 0 || slices.Contains([]string{"labels", "annotations", "data"}, above) {
			end = len(name)
		}
		path, rest = append(path, fieldpath.PathElement{FieldName: new(name[:end])}), name[end:]
	}
	if path.String() != text {
		t.Fatalf("%s was read as %s", text, path)
	}
	return path
}

func TestASelectorOfAFieldSelectsWhatIsBelow(t *testing.T) {
	for name, test := range map[string]struct {
		entry, path string
		want        bool
	}{
		"the field":                {".spec.replicas", ".spec.replicas", true},
		"a field below":            {".spec.template", ".spec.template.spec", true},
		"an item below":            {".spec.ports", ".spec.ports[port=80]", true},
		"a field of an item":       {".spec.ports[port=80]", ".spec.ports[port=80].name", true},
		"a field above":            {".spec.template.spec", ".spec.template", false},
		"a longer name":            {".spec.rep", ".spec.replicas", false},
		"a key":                    {".metadata.labels.app.kubernetes.io/name", ".metadata.labels.app.kubernetes.io/name", true},
		"the beginning of a key":   {".metadata.labels.app", ".metadata.labels.app.kubernetes.io/name", false},
		"another field":            {".spec.replicas", ".spec.paused", false},
		"of the object":            {"deployment.apps/web:.spec", ".spec.replicas", true},
		"of another kind":          {"statefulset.apps/web:.spec", ".spec.replicas", false},
		"of another name":          {"deployment.apps/other:.spec", ".spec.replicas", false},
		"a manager":                {"helm", ".spec.replicas", false},
		"an object alone":          {"deployment.apps/web:", ".spec.replicas", false},
		"a manager of the objects": {"deployment.apps/web:helm", ".spec.replicas", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := request.Read(test.entry)[0].Field(webDeployment, pathOf(t, test.path)); got != test.want {
				t.Errorf("%s selects %s: %t", test.entry, test.path, got)
			}
		})
	}
}

func TestASelectorOfOwnersMatchesWholeNames(t *testing.T) {
	helm := ownership.Owner{Manager: "helm"}
	for entry, want := range map[string]bool{
		"helm":                         true,
		"hel":                          false,
		"helm-2":                       false,
		"deployment.apps/web:helm":     true,
		"deployment.apps/other:helm":   false,
		".spec":                        true,
		".status":                      false,
		"deployment.apps/web:.spec":    true,
		"deployment.apps/other:.spec":  false,
		"deployment.apps/web:":         false,
		"statefulset.apps/web:.status": false,
	} {
		if got := request.Read(entry)[0].Owned(webDeployment, pathOf(t, ".spec.replicas"), helm); got != want {
			t.Errorf("%s selects the replicas of helm: %t", entry, got)
		}
	}
}
