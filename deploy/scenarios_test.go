// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// The objects of a file name only fields that exist, and refer to one another and to nothing else; and that there is a scenario for each
// kind.
func TestScenariosNameOnlyWhatExists(t *testing.T) {
	kinds, names := map[string]bool{}, map[string]string{}
	err := fs.WalkDir(Scenarios, "samples/scenarios", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(Scenarios, path)
		if err != nil {
			return err
		}
		var has, wants []string
		for _, document := range documents(t, string(data)) {
			object := metav1.PartialObjectMetadata{}
			if err := yaml.Unmarshal(document, &object); err != nil {
				t.Fatal(err)
			}
			as := object.Kind + "/" + object.Name
			if object.Name == "" || object.Namespace != "" || names[as] != "" {
				t.Errorf("%s: %s is in namespace %q and in %q, want a name of its own and no namespace", path, as, object.Namespace, names[as])
			}
			kinds[object.Kind], names[as] = true, path
			server, ok := decodeScenario(t, path, document, object.TypeMeta).(*v1beta1.MCPServer)
			if !ok {
				has = append(has, as)
				continue
			}
			for _, named := range configs.Of(&server.Spec) {
				wants = append(wants, named.Kind+"/"+named.Name)
			}
			if !pinned(server.Spec.Image) {
				t.Errorf("%s: the image %s is not pinned", path, server.Spec.Image)
			}
		}
		slices.Sort(has)
		slices.Sort(wants)
		if diff := cmp.Diff(wants, has); diff != "" {
			t.Errorf("%s: what its MCPServers refer to (-) and what it has (+):\n%s", path, diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		v1beta1.MCPAuthzConfigKind, v1beta1.MCPExternalAuthConfigKind, v1beta1.MCPGroupKind, v1beta1.MCPOIDCConfigKind, v1beta1.MCPServerKind,
		v1beta1.MCPTelemetryConfigKind, v1beta1.MCPToolConfigKind, v1beta1.MCPWebhookConfigKind,
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(kinds))); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// decodeScenario returns an object as its type, which must have all its fields.
func decodeScenario(t *testing.T, path string, document []byte, of metav1.TypeMeta) runtime.Object {
	t.Helper()
	kind := v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind)
	if config := managers.ConfigOf(v1beta1.Kind(of.Kind)); config != nil {
		kind = config.GroupVersionKind
	}
	if of.GroupVersionKind() != kind {
		t.Errorf("%s: there is a %s, want %s", path, of.GroupVersionKind(), kind)
	}
	object, err := toolhivescheme.Scheme.New(kind)
	if err := errors.Join(err, yaml.UnmarshalStrict(document, object)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	switch object := object.(type) {
	case *v1beta1.MCPServer:
		if len(object.Spec.UnknownFields) > 0 || object.Spec.Malformed != "" {
			t.Errorf("%s: an MCPServer has what its type lacks: %v %s", path, object.Spec.UnknownFields, object.Spec.Malformed)
		}
	case *v1beta1.MCPGroup:
		if len(object.Spec.UnknownFields) > 0 || object.Spec.Malformed != "" {
			t.Errorf("%s: an MCPGroup has what its type lacks: %v %s", path, object.Spec.UnknownFields, object.Spec.Malformed)
		}
	default:
		if err := configs.Read(object).Validate(); err != nil {
			t.Errorf("%s: a %s cannot be used: %v", path, of.Kind, err)
		}
	}
	return object
}
