// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/deploy/crd"
)

// mcpServers are the objects that TestRejectedByDefinition is about.
const mcpServers = "mcpservers"

// TestRulesOfKinds shows that the API server enforces the CEL rules of the kinds that an MCPServer refers to, in each version, and
// refuses nothing that the rules accept.
func TestRulesOfKinds(t *testing.T) {
	t.Parallel()
	namespace := env.Namespace(t).Name
	config := rest.CopyConfig(env.Config)
	config.WarningHandler = rest.NoWarnings{} // That v1alpha1 is deprecated.
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitionsOfKinds(t) {
		resource := crd.Stored(definition)
		for version := range schemasOf(definition) {
			resource.Version = version
			objects := dynamicClient.Resource(resource).Namespace(namespace)
			for _, r := range rulesOf(resource.Resource) {
				t.Run(resource.Resource+"/"+version+"/"+r.field+"/"+r.message, func(t *testing.T) {
					send := func(spec string) error {
						object := &unstructured.Unstructured{Object: map[string]any{
							"metadata": map[string]any{"name": "tried"}, "spec": decodeSpec(t, spec),
						}}
						object.SetAPIVersion(resource.GroupVersion().String())
						object.SetKind(kindOf(definition))
						_, err := objects.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
						return err
					}
					if err := send(r.accepted); err != nil {
						t.Errorf("%s should be accepted: %v", r.accepted, err)
					}
					err := send(r.rejected)
					if !apierrors.IsInvalid(err) {
						t.Fatalf("%s should be invalid, but the answer is: %v", r.rejected, err)
					}
					status, _ := errors.AsType[*apierrors.StatusError](err)
					if !slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
						return strings.ReplaceAll(c.Field, "[0]", "[]") == r.field && strings.Contains(c.Message, r.message)
					}) {
						t.Errorf("the answer should say %q of %s; it is: %v", r.message, r.field, err)
					}
				})
			}
		}
	}
}

// TestEveryRuleOfKindsIsTried compares the CEL rules of the definitions with those of the table.
func TestEveryRuleOfKindsIsTried(t *testing.T) {
	t.Parallel()
	for _, definition := range definitionsOfKinds(t) {
		var tried []string
		for _, r := range rulesOf(crd.Stored(definition).Resource) {
			tried = append(tried, r.field+": "+r.message)
		}
		slices.Sort(tried)
		for version, schema := range schemasOf(definition) {
			defined := celRules("", schema)
			slices.Sort(defined)
			for _, rule := range defined {
				if !slices.Contains(tried, rule) {
					t.Errorf("%s, %s: nothing tries the rule %s", definition.GetName(), version, rule)
				}
			}
			for _, rule := range tried {
				if !slices.Contains(defined, rule) {
					t.Errorf("%s, %s: there is no rule %s", definition.GetName(), version, rule)
				}
			}
		}
	}
}

// rulesOf returns the rules of a resource, with whole fields and specs.
func rulesOf(resource string) []kindRule {
	rules := slices.Clone(kindRules[resource])
	if resource != "mcpexternalauthconfigs" {
		return rules
	}
	server := func(part string) string {
		if !strings.Contains(part, ` issuer: "`) {
			part = `issuer: "https://auth", ` + part
		}
		return "{type: embeddedAuthServer, embeddedAuthServer: {" + part + "}}"
	}
	for _, r := range authServerRules {
		rules = append(rules, kindRule{"spec.embeddedAuthServer" + r.field, r.message, server(r.accepted), server(r.rejected)})
	}
	return rules
}

func definitionsOfKinds(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	for _, object := range all {
		if crd.Stored(object).Resource != mcpServers {
			found = append(found, object)
		}
	}
	if len(found) == 0 {
		t.Fatal("there are no definitions")
	}
	return found
}

// schemasOf returns the schemas of a definition by version.
func schemasOf(definition *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(version, "name")
		found[name], _, _ = unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	}
	return found
}

func kindOf(definition *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return kind
}

// celRules returns the rules of a schema as FIELD: MESSAGE, or as FIELD: RULE where a rule has no message.
func celRules(field string, schema map[string]any) []string {
	var found []string
	rules, _, _ := unstructured.NestedSlice(schema, "x-kubernetes-validations")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		text, ok := rule["message"].(string)
		if !ok {
			text, _ = rule["rule"].(string)
		}
		found = append(found, field+": "+text)
	}
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		found = append(found, celRules(strings.TrimPrefix(field+"."+name, "."), property)...)
	}
	if items, _, _ := unstructured.NestedMap(schema, "items"); items != nil {
		found = append(found, celRules(field+"[]", items)...)
	}
	return found
}

func decodeSpec(t *testing.T, text string) map[string]any {
	t.Helper()
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}
