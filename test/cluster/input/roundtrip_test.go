// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestObjectsOfToolHive creates the objects that ToolHive's recorded cases begin with, and expects that the API server refuses those
// alone which the recording says.
func TestObjectsOfToolHive(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	root := os.Getenv("FREEHOLD_UPSTREAM")
	if root == "" {
		root = filepath.FromSlash("../../../../shared/upstream")
	}
	root = filepath.Join(root, "references")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("recordings of ToolHive are not here (%v); set FREEHOLD_UPSTREAM to the directory that holds references/", err)
	}
	s := newRoundTrip(t)
	refused := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(filepath.Dir(path)) != "input" || filepath.Ext(path) != ".yaml" {
			return err
		}
		directory := filepath.Dir(filepath.Dir(path))
		refusals, err := os.ReadFile(filepath.Join(directory, "ADMISSION-ERRORS.txt"))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := operator.Decode(text)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if !s.knows(object) {
				continue
			}
			name := object.GetKind() + "/" + object.GetName()
			t.Run(filepath.Base(directory)+"/"+name, func(t *testing.T) {
				want := ""
				for line := range strings.Lines(string(refusals)) {
					if of, problem, _ := strings.Cut(strings.TrimSpace(line), ": "); of == name {
						want = problem
					}
				}
				if want == "" {
					s.check(t, object)
					return
				}
				refused++
				if _, err := s.create(t.Context(), object); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the API server says %v, not %s", err, want)
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.checked < 200 || refused == 0 {
		t.Errorf("%d objects were checked and %d refused", s.checked, refused)
	}
}

// TestSamplesAreStored creates the objects of the samples and of the scenarios.
func TestSamplesAreStored(t *testing.T) {
	t.Parallel()
	s := newRoundTrip(t)
	kinds := map[string]bool{}
	for _, files := range []fs.FS{deploy.Samples, deploy.Scenarios} {
		err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			objects, err := operator.Decode(text)
			if err != nil {
				return err
			}
			for _, object := range objects {
				kinds[object.GetKind()] = true
				t.Run(filepath.Base(path)+"/"+object.GetKind()+"/"+object.GetName(), func(t *testing.T) { s.check(t, object) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != len(s.definitions) {
		t.Errorf("the samples have objects of the kinds %v alone", slices.Sorted(maps.Keys(kinds)))
	}
}

// roundTrip stores objects, reads them with typed clients, and stores them as these read them.
type roundTrip struct {
	namespace   string
	client      dynamic.Interface
	definitions map[string]*unstructured.Unstructured // By kind.
	checked     int
}

func newRoundTrip(t *testing.T) *roundTrip {
	t.Helper()
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := &roundTrip{namespace: env.Namespace(t).Name, client: client, definitions: map[string]*unstructured.Unstructured{}}
	definitions, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range definitions {
		s.definitions[kindOf(object)] = object
	}
	return s
}

func (s *roundTrip) knows(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == toolhive.GroupName && s.definitions[object.GetKind()] != nil
}

func (s *roundTrip) of(kind string) dynamic.ResourceInterface {
	return s.client.Resource(crd.Stored(s.definitions[kind])).Namespace(s.namespace)
}

func (s *roundTrip) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.of(object.GetKind()).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Stored(s.definitions[object.GetKind()]).GroupVersion().String(), "kind": object.GetKind(),
		"metadata": map[string]any{"name": object.GetName()}, "spec": object.Object["spec"],
	}}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// check fails the test where the API server drops a part of the object, or the typed client does.
func (s *roundTrip) check(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	s.checked++
	const again = "again"
	kind := object.GetKind()
	stored, err := s.create(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	if missing := missingPaths("spec", object.Object["spec"], stored.Object["spec"]); len(missing) > 0 {
		t.Errorf("the API server has not stored %v", missing)
	}
	if err := typedCopies(env.Servers, s.namespace)[kind](t.Context(), object.GetName(), again); err != nil {
		t.Fatal(err)
	}
	copied, err := s.of(kind).Get(t.Context(), again, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := slices.DeleteFunc(missingPaths("spec", stored.Object["spec"], copied.Object["spec"]), func(path string) bool {
		return kind == "MCPWebhookConfig" && strings.HasSuffix(path, ".tlsConfig.insecureSkipVerify") // It is false, and has no default.
	})
	if len(lost) > 0 {
		t.Errorf("the typed client loses %v", lost)
	}
	// The resources of an MCPServer are no pointer, so that the client writes them although they are empty.
	added := slices.DeleteFunc(missingPaths("spec", copied.Object["spec"], stored.Object["spec"]), func(path string) bool {
		return kind == "MCPServer" && path == "spec.resources"
	})
	if len(added) > 0 {
		t.Errorf("the typed client adds %v", added)
	}
	for _, name := range []string{object.GetName(), again} {
		if err := s.of(kind).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}
