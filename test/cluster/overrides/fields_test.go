// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

//go:embed testdata/podtemplate-fields.yaml
var podTemplateFields []byte

// fieldCases are parts of pod templates, see the file.
type fieldCases struct {
	fieldsByPlace
	LeftOut fieldsByPlace
}

type fieldsByPlace struct {
	Pod, Container, Sidecar, Volume []map[string]any
}

// together is how many containers or volumes share a pod.
const together = 20

// servers makes MCPServers of which each has some of the cases.
func (c fieldsByPlace) servers(t *testing.T, prefix string) []*v1beta1.MCPServer {
	t.Helper()
	var servers []*v1beta1.MCPServer
	add := func(name string, spec map[string]any) {
		text, err := json.Marshal(map[string]any{
			// A pod that does not become ready gets no proxy, so a hundred of them cost little.
			"metadata": map[string]any{"annotations": map[string]any{cluster.ReadyAfterAnnotation: "24h"}},
			"spec":     spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, harness.Server(prefix+name, v1beta1.TransportStdio,
			harness.PodTemplate(string(text)), harness.ServiceAccountOfUser))
	}
	for i, fields := range c.Pod {
		add(fmt.Sprintf("pod-%d", i), fields)
	}
	own := slices.Concat(c.Container, c.Sidecar)
	for i, fields := range own {
		add(fmt.Sprintf("own-%d", i), withVolumes(map[string]any{"containers": []any{named("mcp", fields)}}))
	}
	for i, chunk := range slices.Collect(slices.Chunk(own, together)) {
		add(fmt.Sprintf("beside-%d", i), withVolumes(map[string]any{"containers": containers(chunk)}))
	}
	for i, chunk := range slices.Collect(slices.Chunk(c.Container, together)) {
		add(fmt.Sprintf("init-%d", i), withVolumes(map[string]any{"initContainers": containers(chunk)}))
	}
	for i, chunk := range slices.Collect(slices.Chunk(c.Volume, together)) {
		var volumes []any
		for j, fields := range chunk {
			volumes = append(volumes, named(fmt.Sprintf("v-%d", j), fields))
		}
		add(fmt.Sprintf("volumes-%d", i), map[string]any{"volumes": volumes})
	}
	return servers
}

func containers(cases []map[string]any) []any {
	var list []any
	for i, fields := range cases {
		container := named(fmt.Sprintf("c-%d", i), fields)
		container["image"] = "example.com/side:1"
		list = append(list, container)
	}
	return list
}

func named(name string, fields map[string]any) map[string]any {
	with := maps.Clone(fields)
	with["name"] = name
	return with
}

// withVolumes adds the volumes that containers mount.
func withVolumes(spec map[string]any) map[string]any {
	spec["volumes"] = []any{
		map[string]any{"name": "scratch", "emptyDir": map[string]any{}},
		map[string]any{"name": "claim", "persistentVolumeClaim": map[string]any{"claimName": "claim"}},
	}
	return spec
}

// TestPodTemplateFields gives MCPServers pod templates that together use every field of a pod. The API server accepts
// each, and an operator that sees them for the first time finds nothing to write: what it wants and what it owns are
// the same, whatever the API server made of it, unless that left a field out.
func TestPodTemplateFields(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	var cases fieldCases
	if err := yaml.UnmarshalStrict(podTemplateFields, &cases); err != nil {
		t.Fatal(err)
	}
	leftOut := cases.LeftOut.servers(t, "left-out-")
	servers := append(cases.servers(t, ""), leftOut...)
	checkCoverage(t, servers)

	s := newStage(t, env)
	first := s.Operate(t)
	harness.Each(t, servers, func(server *v1beta1.MCPServer) error {
		_, err := s.Servers.Create(t.Context(), server, metav1.CreateOptions{FieldManager: harness.Author})
		return err
	})
	s.AwaitLook(t, first)
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), harness.Rest)
	list, err := s.Servers.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		server := &list.Items[i]
		applied := harness.Fine[2]
		if slices.ContainsFunc(leftOut, func(other *v1beta1.MCPServer) bool { return other.Name == server.Name }) {
			applied.Reason = v1beta1.ReasonAltered // It is stored otherwise than sent.
		}
		for _, e := range []harness.Expectation{
			applied, harness.Fine[3], {Condition: v1beta1.ConditionPodTemplateValid, Status: metav1.ConditionTrue, Reason: "ValidPodTemplateSpec"},
		} {
			if err := e.Missing(server); err != nil {
				t.Errorf("%s, with %s: %v", server.Name, server.Spec.PodTemplateSpec.Raw, err)
			}
		}
	}

	restarted := s.Mark(t)
	s.ReplaceOperator(t, first)
	s.AwaitOperatorRest(t)
	expected := map[string]bool{}
	for _, server := range leftOut {
		expected[server.Name] = true
	}
	for _, e := range s.Writes(t, restarted) {
		if e.FieldManager == managers.Backend && expected[e.Name] {
			if e.Succeeded() { // A refused one came too late, and is made again.
				delete(expected, e.Name)
			}
			continue
		}
		t.Errorf("a restart costs a write: %v\n%s", e, s.difference(t, e))
	}
	for name := range expected {
		t.Errorf("%s is not written any more after a restart; its case belongs to the others", name)
	}
	statefulSets, err := s.Core.AppsV1().StatefulSets(s.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range statefulSets.Items {
		if found := &statefulSets.Items[i]; found.Generation != 1 {
			t.Errorf("StatefulSet %s has been changed", found.Name)
		}
	}
}

// difference tells how the body of an apply of a StatefulSet differs from what its manager owns.
func (s *stage) difference(t *testing.T, e *audit.Event) string {
	t.Helper()
	if e.Resource != "statefulsets" {
		return string(e.Body)
	}
	live, err := s.Core.AppsV1().StatefulSets(s.Name).Get(t.Context(), e.Name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	owned, err := appsv1ac.ExtractStatefulSet(live, managers.Backend)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(owned)
	if err != nil {
		return err.Error()
	}
	var sent, got map[string]any
	if err := json.Unmarshal(e.Body, &sent); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return err.Error()
	}
	return "(-owned +sent)\n" + cmp.Diff(got["spec"], sent["spec"])
}

// notExercised are fields of a pod template that a user cannot set to any effect, and why.
var notExercised = map[string]string{
	"PodSpec.ephemeralContainers":   "not allowed in a pod template",
	"PodSpec.activeDeadlineSeconds": "not allowed in a StatefulSet",
}

// checkCoverage fails the test unless the pod templates use every field that a pod has in the API that this module is
// built with, and no others.
func checkCoverage(t *testing.T, servers []*v1beta1.MCPServer) {
	t.Helper()
	used := map[string]bool{}
	for _, server := range servers {
		var value any
		if err := json.Unmarshal(server.Spec.PodTemplateSpec.Raw, &value); err != nil {
			t.Fatal(err)
		}
		for _, unknown := range useFields(reflect.TypeFor[corev1.PodTemplateSpec](), value, used) {
			t.Errorf("%s: there is no field %s", server.Name, unknown)
		}
	}
	for field := range allFields(reflect.TypeFor[corev1.PodSpec](), map[reflect.Type]bool{}) {
		if _, excluded := notExercised[field]; excluded == used[field] {
			t.Errorf("%s: it is used: %t, it is among those that cannot be: %t", field, used[field], excluded)
		}
	}
}

// useFields notes which fields of a type a JSON value sets, as Type.field, and returns those that do not exist.
func useFields(typ reflect.Type, value any, used map[string]bool) (unknown []string) {
	typ = element(typ)
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			unknown = append(unknown, useFields(typ, item, used)...)
		}
	case map[string]any:
		if !walked(typ) {
			return nil
		}
		fields := fieldsByName(typ)
		for key, item := range value {
			field, ok := fields[key]
			if !ok {
				unknown = append(unknown, typ.Name()+"."+key)
				continue
			}
			used[field.owner+"."+key] = true
			unknown = append(unknown, useFields(field.typ, item, used)...)
		}
	}
	return unknown
}

// allFields returns every field that is reachable from a type.
func allFields(typ reflect.Type, seen map[reflect.Type]bool) map[string]bool {
	typ = element(typ)
	all := map[string]bool{}
	if !walked(typ) || seen[typ] || typ == reflect.TypeFor[corev1.EphemeralContainer]() {
		return all
	}
	seen[typ] = true
	for name, field := range fieldsByName(typ) {
		all[field.owner+"."+name] = true
		maps.Copy(all, allFields(field.typ, seen))
	}
	return all
}

type goField struct {
	// owner is the type that declares the field, which may be inlined into another one.
	owner string
	typ   reflect.Type
}

func fieldsByName(typ reflect.Type) map[string]goField {
	fields := map[string]goField{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(fields, fieldsByName(element(f.Type)))
			continue
		}
		fields[name] = goField{typ.Name(), f.Type}
	}
	return fields
}

// walked tells whether a type is one of those that make up a pod, and not a value with a JSON form of its own or
// metadata.
func walked(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) &&
		typ != reflect.TypeFor[metav1.ObjectMeta]()
}

func element(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	return typ
}
