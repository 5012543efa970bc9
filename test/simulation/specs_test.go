// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
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

var specs = flag.Int("specs", 1, "of how many specs TestSpecs tries one; 100 with -short")

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

// freshOf returns how it ends where the subject is created with the n-th mutation; with none for -1.
func (o *subject) freshOf(t *testing.T, n int) history.State {
	t.Helper()
	o.mu.Lock()
	once := o.fresh[n]
	if once == nil {
		once = sync.OnceValue(func() (state history.State) {
			m := unmutated
			if n >= 0 {
				m = o.accepted[n]
			}
			Run(t, *seed, func(s *Simulation) {
				s.Start()
				o.create(s, m)
				s.Settle()
				state = s.settled()
				s.oracle.report()
			})
			return state
		})
		o.fresh[n] = once
	}
	o.mu.Unlock()
	return once()
}

// made reports whether there is a proxy.
func made(state history.State) bool { return state["Deployment/web"] != nil }

// numbers are those that tell how a spec has come about, not what it is.
var numbers = regexp.MustCompile(`(uid-of-MCP[A-Za-z]+-(web|subject|users)/)\d+|("(observedGeneration|generation)":)\d+`)

// passed is what stays of earlier specs by right: with which image the backend last served, and whether an affinity that was emptied is
// there without a rule, which means the same as none.
var passed = regexp.MustCompile(`(has not served yet|last served with image [^"\\\\]*)|,?"(node|pod|podAnti)Affinity":\{\}`)

// settled is what a cluster holds, whatever it has held before.
func (s *Simulation) settled() history.State {
	s.t.Helper()
	state := s.state()
	for key, object := range state {
		switch {
		case strings.HasPrefix(key, "MCP"):
			object = reported(s.t, object)
		case strings.HasPrefix(key, "ConfigMap/web-") && !strings.Contains(string(state["Deployment/web"]), strings.TrimPrefix(key, "ConfigMap/")):
			delete(state, key) // An earlier revision reads it.
			continue
		}
		if strings.HasPrefix(key, "StatefulSet/") {
			object = withoutRides(s.t, object)
		}
		state[key] = passed.ReplaceAll(numbers.ReplaceAll(object, []byte("${1}${3}0")), nil)
	}
	return state
}

// withoutRides is the StatefulSet without what stays in its template although the spec has changed: the label that Freehold leaves as
// it is until the template changes for another cause, and the API server's default for how to pull an image, which stays that of
// the first image. The names of the revisions, which tell of both, are left out too.
func withoutRides(t *testing.T, object json.RawMessage) json.RawMessage {
	t.Helper()
	whole := fields{}
	if err := json.Unmarshal(object, &whole); err != nil {
		t.Fatal(err)
	}
	set := whole["object"].(fields)
	unstructured.RemoveNestedField(set, "spec", "template", "metadata", "labels", "toolhive-port")
	containers, _, _ := unstructured.NestedSlice(set, "spec", "template", "spec", "containers")
	for _, container := range containers {
		delete(container.(fields), "imagePullPolicy")
	}
	if err := unstructured.SetNestedSlice(set, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(set, "status", "currentRevision")
	unstructured.RemoveNestedField(set, "status", "updateRevision")
	return json.RawMessage(text(whole))
}

// reported is what the operator has written of a custom resource. What it says besides, and who wrote that, is the author's.
func reported(t *testing.T, object json.RawMessage) json.RawMessage {
	t.Helper()
	var whole struct {
		Object struct {
			Status   json.RawMessage
			Metadata struct{ Finalizers []string }
		}
		Owners map[string][]string
	}
	if err := json.Unmarshal(object, &whole); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(whole.Owners, func(owner string, _ []string) bool { return !strings.HasPrefix(owner, "freehold-") })
	return json.RawMessage(text(map[string]any{
		"finalizers": whole.Object.Metadata.Finalizers, "status": whole.Object.Status, "owners": whole.Owners,
	}))
}

// TestSpecs sets every field of an MCPServer's spec to several values, and that of every configuration that an MCPServer refers to. A
// spec that the API server refuses costs nothing. One that it accepts ends as it does for an object that is created with it; so
// does the next one, and the one that it had before. Where a spec cannot be used, the proxy goes on as it was until the next one.
func TestSpecs(t *testing.T) {
	configs, err := configSubjects()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]*subject{}
	for _, o := range configs {
		of[o.it().GetKind()] = append(of[o.it().GetKind()], o)
	}
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	for kind := range all {
		if len(of[kind]) == 0 {
			t.Errorf("there is no %s whose fields are changed", kind)
		}
	}
	share := *specs
	if testing.Short() {
		share = 100
	}
	number := 0
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		prepare(t, of[kind])
		for _, o := range of[kind] {
			t.Run(fmt.Sprint(o.label, " refused"), func(t *testing.T) {
				t.Parallel()
				o.refuse(t)
			})
			for n := range o.accepted {
				if number++; number%share != int(*seed%uint64(share)) {
					continue
				}
				t.Run(fmt.Sprint(o.label, n, o.accepted[n].field), func(t *testing.T) {
					t.Parallel()
					o.change(t, n)
				})
			}
		}
	}
	t.Logf("%d specs", number)
}

// refuse tries what the API server refuses.
func (o *subject) refuse(t *testing.T) {
	t.Helper()
	Run(t, *seed, func(s *Simulation) {
		s.Start()
		o.create(s, unmutated)
		s.Settle()
		version := s.Server.Version()
		for _, m := range o.refused {
			if err := o.edit(s, m.of(o.spec())); !apierrors.IsInvalid(err) {
				t.Errorf("%s is refused in a new object, and of an edit the API server says %v", &m, err)
			}
		}
		s.Settle()
		if s.Server.Version() != version {
			t.Errorf("all is refused, and something is written")
		}
	})
}

// change edits from one accepted spec to the next and back.
func (o *subject) change(t *testing.T, n int) {
	t.Helper()
	// Which specs come after one another differs from seed to seed.
	then := (n + 1 + int(*seed%uint64(len(o.accepted)))) % len(o.accepted)
	fresh := map[int]history.State{}
	for _, one := range []int{n, then, -1} {
		fresh[one] = o.freshOf(t, one)
	}
	Run(t, *seed, func(s *Simulation) {
		s.Record = true
		s.Start()
		o.create(s, unmutated)
		s.Settle()
		before, named := s.settled(), "nothing"
		for _, one := range []int{n, then, -1} {
			m := unmutated
			if one >= 0 {
				m = o.accepted[one]
			}
			if err := o.edit(s, m.of(o.spec())); err != nil {
				t.Fatalf("%s: %v", &m, err)
			}
			s.Settle()
			now := s.settled()
			diff := differs(fresh[one], now)
			if !made(fresh[one]) {
				diff = cmp.Diff(o.held(s.t, fresh[one], before), o.held(s.t, now, now))
			}
			if diff != "" {
				t.Errorf("%s after %s ends otherwise than what is created so (-created +edited):\n%s", &m, named, diff)
			}
			if strings.HasSuffix(strings.ToLower(m.field), "replicas") {
				break // A number that is not asked for any more stays as it is.
			}
			before, named = now, m.String()
		}
		s.oracle.report()
	})
}

// held is what is to be seen of a spec that cannot be used, in the place of one that could: the proxy is as it was before, and so is
// everything else unless the spec is the MCPServer's own, whose backend goes on. The conditions are those of an object that is
// created so, but for what they say of the proxy that there is.
func (o *subject) held(t *testing.T, conditions, rest history.State) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for key, object := range rest {
		if !strings.HasPrefix(key, "MCP") && (o.it().GetKind() != v1beta1.MCPServerKind || key == "Deployment/web" || strings.HasPrefix(key, "ConfigMap/")) {
			seen[key] = string(object)
		}
	}
	for key, object := range conditions {
		if !strings.HasPrefix(key, "MCP") {
			continue
		}
		var whole struct {
			Status struct {
				Conditions []struct{ Type, Status, Reason, Message string }
			}
		}
		if err := json.Unmarshal(object, &whole); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		for _, c := range whole.Status.Conditions {
			if slices.Contains([]string{v1beta1.ConditionRolledOut, v1beta1.ConditionApplied, v1beta1.ConditionFieldsOwned}, c.Type) {
				continue // They tell of what was applied last. A new object has had nothing applied.
			}
			says := fmt.Sprint(c.Status, " ", c.Reason)
			if key != "MCPServer/web" {
				says += ": " + c.Message
			}
			seen[key+" "+c.Type] = says
		}
	}
	return seen
}
