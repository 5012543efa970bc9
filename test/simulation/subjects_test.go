// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
)

// configsDir has a file for each sort of configuration: the object whose fields are changed, which is called subject, and then
// what it takes to have an MCPServer that refers to it.
const configsDir = "testdata/configs"

// subject is an object whose fields are changed one by one.
type subject struct {
	label   string
	objects []*unstructured.Unstructured
	// all are what is accepted of it, and refused what the API server refuses.
	accepted, refused []mutation

	mu    sync.Mutex
	fresh map[int]func() history.State
}

// it is the object itself.
func (o *subject) it() *unstructured.Unstructured { return o.objects[0] }

func (o *subject) spec() fields { return o.it().Object["spec"].(fields) }

// schemas are those of the specs of custom resources, by kind.
var schemas = sync.OnceValues(func() (map[string]*apiextensionsv1.JSONSchemaProps, error) {
	definitions, err := crd.All()
	if err != nil {
		return nil, err
	}
	all := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, d := range definitions {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(d.YAML), definition); err != nil {
			return nil, err
		}
		for i := range definition.Spec.Versions {
			if version := &definition.Spec.Versions[i]; version.Storage {
				spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
				all[definition.Spec.Names.Kind] = &spec
			}
		}
	}
	all[v1beta1.MCPAuthzConfigKind].Properties["config"] = policies()
	return all, nil
})

// policies is the schema of what an MCPAuthzConfig has in a field whose schema does not say.
func policies() apiextensionsv1.JSONSchemaProps {
	of := func(kind string) apiextensionsv1.JSONSchemaProps { return apiextensionsv1.JSONSchemaProps{Type: kind} }
	list := func() apiextensionsv1.JSONSchemaProps {
		item := of("string")
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	return object(map[string]apiextensionsv1.JSONSchemaProps{
		"policies": list(), "entities_json": of("string"), "primary_upstream_provider": of("string"), "group_claim_name": of("string"),
		"role_claim_name": of("string"), "group_entity_type": of("string"), "multi_valued_claims": list(),
		"http":          object(map[string]apiextensionsv1.JSONSchemaProps{"url": of("string"), "timeout": of("integer"), "insecure_skip_verify": of("boolean")}),
		"context":       object(map[string]apiextensionsv1.JSONSchemaProps{"include_args": of("boolean"), "include_operation": of("boolean")}),
		"claim_mapping": of("string"),
	})
}

// configSubjects are those of the directory.
func configSubjects() ([]*subject, error) {
	files, err := filepath.Glob(filepath.Join(configsDir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*subject
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		o := &subject{label: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			text, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(text); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			o.objects = append(o.objects, obj)
		}
		all = append(all, o)
	}
	return all, nil
}

// prepare finds out what may be done to subjects of one kind. A field that one spec has is left to that one by the others.
func prepare(t *testing.T, of []*subject) {
	t.Helper()
	kinds, err := allKinds()
	if err != nil {
		t.Fatal(err)
	}
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(kinds...)
	if err != nil {
		t.Fatal(err)
	}
	addNamespace(t, server, "shop")
	schema, kind := all[of[0].it().GetKind()], server.KindOf(toolhive, of[0].it().GetKind())
	covered := map[string]bool{}
	for _, o := range of {
		before := maps.Clone(covered)
		o.fresh = map[int]func() history.State{}
		elsewhere := func(field string) bool {
			return before[field] || slices.ContainsFunc(of, func(other *subject) bool { return other != o && hasField(other.spec(), field) })
		}
		create := func(m mutation) error {
			obj := o.it().DeepCopy()
			obj.Object["spec"] = m.of(o.spec())
			obj.SetName(fmt.Sprint(server.Version()))
			obj.SetNamespace("shop")
			return server.Create(kind, obj, "kubectl-create")
		}
		if err := create(mutation{path: []string{"no-such-field"}}); err != nil {
			t.Fatalf("%s: %v", o.label, err)
		}
		for _, m := range mutations(schema, o.spec(), elsewhere) {
			switch err := create(m); {
			case err == nil:
				o.accepted = append(o.accepted, m)
				for field := m.field; field != ""; field = field[:strings.LastIndexAny(field, ".[{")] {
					covered[field] = true
				}
			case apierrors.IsInvalid(err):
				o.refused = append(o.refused, m)
			default:
				t.Errorf("%s: %s: %v", o.label, &m, err)
			}
		}
	}
	for _, o := range of {
		for _, m := range o.refused {
			if !covered[m.field] && !inTwoPlaces[m.field] {
				t.Errorf("%s: no value of %s is ever accepted", o.it().GetKind(), m.field)
				covered[m.field] = true
			}
		}
	}
}

// inTwoPlaces are fields whose values have to be the same in another place, so none is accepted but that which is there.
var inTwoPlaces = map[string]bool{
	".embeddedAuthServer.inboundGrants.spiffeClientAuth[].trustDomainRef": true,
	".embeddedAuthServer.spiffeTrustDomains[].name":                       true,
	".embeddedAuthServer.spiffeTrustDomains[].trustDomain":                true,
}

// hasField reports whether a spec has a field of a schema.
func hasField(value any, field string) bool {
	switch {
	case field == "":
		return true
	case strings.HasPrefix(field, "[]"):
		list, _ := value.([]any)
		return slices.ContainsFunc(list, func(item any) bool { return hasField(item, field[2:]) })
	case strings.HasPrefix(field, "{}"):
		object, _ := value.(fields)
		for _, inner := range object {
			if hasField(inner, field[2:]) {
				return true
			}
		}
		return false
	}
	object, _ := value.(fields)
	end := strings.IndexAny(field[1:], ".[{") + 1
	if end == 0 {
		end = len(field)
	}
	inner, has := object[field[1:end]]
	return has && hasField(inner, field[end:])
}

// create makes all objects, the subject with a mutation.
func (o *subject) create(s *Simulation, m mutation) {
	s.t.Helper()
	for i, obj := range o.objects {
		made := obj.DeepCopy()
		if i == 0 {
			made.Object["spec"] = m.of(o.spec())
		}
		s.Create(made.GroupVersionKind().Group, made.GetKind(), s.decoded(made))
	}
}

// edit gives the subject a spec.
func (o *subject) edit(s *Simulation, spec fields) error {
	return s.Server.Edit(s.Server.KindOf(toolhive, o.it().GetKind()), "shop", o.it().GetName(), "", "kubectl-edit", func(obj runtime.Object) {
		obj.(*unstructured.Unstructured).Object["spec"] = runtime.DeepCopyJSON(spec)
	})
}

// unmutated changes nothing.
var unmutated = mutation{path: []string{"no-such-field"}}
