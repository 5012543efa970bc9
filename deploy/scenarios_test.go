// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestScenarios shows that the objects of a file name only fields that exist, and refer to one another and to nothing else; and
// that there is a scenario for each kind.
func TestScenarios(t *testing.T) {
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
			decoded := decodeScenario(t, path, document, object.TypeMeta)
			if len(decoded.unknown) > 0 || decoded.malformed != "" {
				t.Errorf("%s: %s has what its type lacks: %v %s", path, as, decoded.unknown, decoded.malformed)
			}
			if decoded.server == nil {
				has = append(has, as)
				continue
			}
			wants = append(wants, references(&decoded.server.Spec)...)
			if !pinned(decoded.server.Spec.Image) {
				t.Errorf("%s: the image %s is not pinned", path, decoded.server.Spec.Image)
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

// scenarioObject is what a type made of an object, and the object itself if it is an MCPServer.
type scenarioObject struct {
	unknown   []string
	malformed string
	server    *v1beta1.MCPServer
}

func decodeScenario(t *testing.T, path string, document []byte, of metav1.TypeMeta) scenarioObject {
	t.Helper()
	version := v1beta1.SchemeGroupVersion.String()
	if of.Kind == v1beta1.MCPWebhookConfigKind {
		version = v1alpha1.SchemeGroupVersion.String()
	}
	if of.APIVersion != version {
		t.Errorf("%s: a %s is of %s, want %s", path, of.Kind, of.APIVersion, version)
	}
	switch of.Kind {
	case v1beta1.MCPServerKind:
		object := strict[v1beta1.MCPServer](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, &object}
	case v1beta1.MCPOIDCConfigKind:
		object := strict[v1beta1.MCPOIDCConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPAuthzConfigKind:
		object := strict[v1beta1.MCPAuthzConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPExternalAuthConfigKind:
		object := strict[v1beta1.MCPExternalAuthConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPToolConfigKind:
		object := strict[v1beta1.MCPToolConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPTelemetryConfigKind:
		object := strict[v1beta1.MCPTelemetryConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPWebhookConfigKind:
		object := strict[v1alpha1.MCPWebhookConfig](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	case v1beta1.MCPGroupKind:
		object := strict[v1beta1.MCPGroup](t, document)
		return scenarioObject{object.Spec.UnknownFields, object.Spec.Malformed, nil}
	}
	t.Errorf("%s: no test looks at a %s", path, of.Kind)
	return scenarioObject{}
}

// references returns what an MCPServer refers to, as KIND/NAME.
func references(spec *v1beta1.MCPServerSpec) []string {
	var found []string
	add := func(kind, name string) { found = append(found, kind+"/"+name) }
	if ref := spec.OIDCConfigRef; ref != nil {
		add(v1beta1.MCPOIDCConfigKind, ref.Name)
	}
	if ref := spec.AuthzConfigRef; ref != nil {
		add(v1beta1.MCPAuthzConfigKind, ref.Name)
	}
	if ref := spec.ExternalAuthConfigRef; ref != nil {
		add(v1beta1.MCPExternalAuthConfigKind, ref.Name)
	}
	if ref := spec.AuthServerRef; ref != nil {
		add(ref.Kind, ref.Name)
	}
	if ref := spec.ToolConfigRef; ref != nil {
		add(v1beta1.MCPToolConfigKind, ref.Name)
	}
	if ref := spec.TelemetryConfigRef; ref != nil {
		add(v1beta1.MCPTelemetryConfigKind, ref.Name)
	}
	if ref := spec.WebhookConfigRef; ref != nil {
		add(v1beta1.MCPWebhookConfigKind, ref.Name)
	}
	if ref := spec.GroupRef; ref != nil {
		add(v1beta1.MCPGroupKind, ref.Name)
	}
	return found
}
