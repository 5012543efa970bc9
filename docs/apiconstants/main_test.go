// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// reference is the file that is made of the types and of what this program prints.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "api-reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The templates leave no type and no field out.
func TestReferenceHasEveryField(t *testing.T) {
	text := reference(t)
	seen := map[reflect.Type]bool{}
	var visit func(of reflect.Type, section string)
	visit = func(of reflect.Type, section string) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(of.Elem(), section)
			return
		case reflect.Struct:
		default:
			return
		}
		if !strings.HasPrefix(of.PkgPath(), "github.com/freehold-dev/") || seen[of] && section == "" {
			return
		}
		seen[of] = true
		if section == "" {
			_, after, found := strings.Cut(text, "\n### "+of.Name()+"\n")
			if !found {
				t.Errorf("there is no section %s", of.Name())
				return
			}
			section, _, _ = strings.Cut(after, "\n### ")
		}
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-":
				// It is not of the API.
			case name == "" && field.Name != "TypeMeta":
				visit(field.Type, section) // Its fields are those of the type that embeds it.
			case name != "":
				if !strings.Contains(section, "\n| `"+name+"` | ") {
					t.Errorf("section %s has no row for %s", of.Name(), name)
				}
				visit(field.Type, "")
			}
		}
	}
	types := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(types), v1alpha1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	for kind, of := range types.AllKnownTypes() {
		if !strings.HasSuffix(kind.Kind, "List") {
			visit(of, "")
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

func TestReferenceHasEveryConstant(t *testing.T) {
	text := reference(t)
	// A condition and its reason can have one value.
	times := map[string]int{}
	for _, c := range promised(t) {
		times[c.value]++
	}
	for value, want := range times {
		if n := strings.Count(text, "\n- `"+value+"` "); n != want {
			t.Errorf("%s is in the reference %d times, want %d", value, n, want)
		}
	}
	for _, value := range []string{v1beta1.TakeoverApproved, v1beta1.BackendRolloutPaused, v1beta1.AnnotationPrefix} {
		if strings.Contains(text, "\n- `"+value+"` ") {
			t.Errorf("%q is taken for a key", value)
		}
	}
}

func TestConstantsAreListedWithTheirComments(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"keys/keys.go": "package keys\n\n// Alone is about\n// <this>.\n//\n// And more.\nconst Alone = \"example.com/b\"\n\n" +
			"const (\n\t// Grouped is too.\n\tGrouped = \"example.com/a\"\n\thidden = \"example.com/c\"\n\tNumber = 3\n)\n",
		"keys/keys_test.go": "package keys\n\n// Tested is not for users.\nconst Tested = \"example.com/d\"\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := constants(filepath.Join(root, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := list(found, func(constant) bool { return true })
	if want := "- `example.com/a` is too.\n- `example.com/b` is about &lt;this>.\n"; err != nil || got != want {
		t.Errorf("got %q and error %v, want %q", got, err, want)
	}
	if _, err := list(found, func(constant) bool { return false }); err == nil {
		t.Error("a section without constants is no error")
	}
	if _, err := list([]constant{{name: "Silent", value: "example.com/e"}}, func(constant) bool { return true }); err == nil || !strings.Contains(err.Error(), "Silent") {
		t.Errorf("a constant without a comment: %v", err)
	}
}
