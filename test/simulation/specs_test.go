// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/internal/history"
)

// mutation sets one field of a spec.
type mutation struct {
	path  string
	value any
}

// mutations returns values for every field that a schema has: each of an enumeration, two of everything else, and some that
// are wrong. What may not be set together, or does not match a pattern, is for the API server to refuse.
func mutations(path string, schema *apiextensionsv1.JSONSchemaProps) (all []mutation) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		at := path + "." + name
		for _, value := range values(&field, 0) {
			all = append(all, mutation{at, value})
		}
		if field.Type == "object" && len(field.Properties) > 0 {
			for _, inner := range mutations(at, &field) {
				// What is required beside it comes with it.
				object, _ := sample(&field, 0).(fields)
				object = runtime.DeepCopyJSON(object)
				setAt(object, strings.Split(strings.TrimPrefix(inner.path, at+"."), "."), inner.value)
				all = append(all, mutation{at, object})
			}
		}
	}
	return all
}

func setAt(into fields, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := into[key].(fields)
		if !ok {
			next = fields{}
			into[key] = next
		}
		into = next
	}
	into[path[len(path)-1]] = value
}

// values returns some values of a type.
func values(schema *apiextensionsv1.JSONSchemaProps, depth int) []any {
	if len(schema.Enum) > 0 {
		var all []any
		for _, one := range schema.Enum {
			all = append(all, strings.Trim(string(one.Raw), `"`))
		}
		return append(all, "no-such-value")
	}
	switch schema.Type {
	case "string":
		return []any{"a", "1.5", "https://example.com/path", "10s", "", strings.Repeat("long", 100)}
	case "integer":
		return []any{int64(0), int64(1), int64(3), int64(-1)}
	case "number":
		return []any{0.5, int64(1)}
	case "boolean":
		return []any{true, false}
	case "array", "object":
		return []any{sample(schema, depth), emptyOf(schema.Type)}
	}
	return []any{"anything", int64(8080), fields{"spec": fields{"containers": []any{}}}}
}

func emptyOf(kind string) any {
	if kind == "array" {
		return []any{}
	}
	return fields{}
}

// sample returns one value with all that is required of it.
func sample(schema *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case schema.Type == "object" && depth < 6:
		object := fields{}
		for _, name := range schema.Required {
			field := schema.Properties[name]
			object[name] = sample(&field, depth+1)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			object["example.com/key"] = sample(schema.AdditionalProperties.Schema, depth+1)
		}
		return object
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil && depth < 6:
		return []any{sample(schema.Items.Schema, depth+1)}
	}
	if all := values(schema, depth); len(all) > 0 {
		return all[0]
	}
	return nil
}

// numbers are those that tell how a spec has come about, not what it is.
var numbers = regexp.MustCompile(`uid-of-MCPServer-web/\d+|"(observedGeneration|generation)":\d+`)

// settled is what a cluster holds of an MCPServer, whatever it has been before.
func (s *Simulation) settled() history.State {
	state := s.state()
	for key, object := range state {
		switch {
		case key == "MCPServer/web":
			// What it says, and who wrote that, is the author's.
			var whole struct {
				Object struct{ Status json.RawMessage }
			}
			if err := json.Unmarshal(object, &whole); err != nil {
				s.t.Fatal(err)
			}
			object = whole.Object.Status
		case strings.HasPrefix(key, "ConfigMap/") && !strings.Contains(string(state["Deployment/web"]), strings.TrimPrefix(key, "ConfigMap/")):
			delete(state, key) // An earlier revision reads it.
			continue
		}
		state[key] = numbers.ReplaceAll(object, nil)
	}
	return state
}

// TestSpecs sets every field of an MCPServer's spec to every value and back. A spec that is refused costs nothing. One that is
// accepted ends as it does for an MCPServer that is created with it, and so does the one that it had before.
func TestSpecs(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(crd.MCPServers), definition); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	schema := definition.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
	all := mutations("", &schema)
	var base history.State
	Run(t, *seed, func(s *Simulation) {
		s.Start()
		s.createServer("web", nil)
		s.Settle()
		base = s.settled()
	})
	for n, m := range all {
		if testing.Short() && n%10 != int(*seed%10) {
			continue
		}
		t.Run(fmt.Sprint(n, m.path), func(t *testing.T) {
			t.Parallel()
			created, fresh := createdWith(t, m)
			Run(t, *seed, func(s *Simulation) {
				s.Record = true
				s.Start()
				s.createServer("web", nil)
				s.Settle()
				version := s.Server.Version()
				if err := s.tryEdit("web", m); err != nil {
					if !apierrors.IsInvalid(err) {
						t.Errorf("%s=%s: %v", m.path, text(m.value), err)
					}
					s.Settle()
					if s.Server.Version() != version {
						t.Errorf("%s=%s is refused, and something is written", m.path, text(m.value))
					}
					return
				}
				s.Settle()
				if _, made := fresh["Deployment/web"]; created && made {
					if diff := differs(fresh, s.settled()); diff != "" {
						t.Errorf("%s=%s ends otherwise than in an MCPServer that is created so (-created +edited):\n%s", m.path, text(m.value), diff)
					}
				}
				if err := s.tryEdit("web", mutation{"", server("web", nil).Object["spec"]}); err != nil {
					t.Fatal(err)
				}
				s.Settle()
				if strings.HasSuffix(strings.ToLower(m.path), "replicas") {
					return // A number that is not asked for any more stays as it is.
				}
				if diff := differs(base, s.settled()); diff != "" {
					t.Errorf("%s=%s and back is not what it was (-before +after):\n%s", m.path, text(m.value), diff)
				}
				s.oracle.report()
			})
		})
	}
}

// createdWith creates an MCPServer with a mutation.
func createdWith(t *testing.T, m mutation) (created bool, state history.State) {
	t.Helper()
	Run(t, *seed, func(s *Simulation) {
		s.Start()
		obj := server("web", nil)
		m.apply(obj.Object)
		if err := s.Server.Create(s.Server.KindOf(toolhive, "MCPServer"), obj, "kubectl-create"); err == nil {
			s.Settle()
			created, state = true, s.settled()
		}
	})
	return created, state
}

func (m mutation) apply(object fields) {
	value := runtime.DeepCopyJSONValue(m.value)
	if m.path == "" {
		object["spec"] = value
		return
	}
	setAt(object["spec"].(fields), strings.Split(strings.TrimPrefix(m.path, "."), "."), value)
}

func (s *Simulation) tryEdit(name string, m mutation) error {
	return s.Server.Edit(s.Server.KindOf(toolhive, "MCPServer"), "shop", name, "", "kubectl-edit", func(obj runtime.Object) {
		m.apply(obj.(*unstructured.Unstructured).Object)
	})
}
