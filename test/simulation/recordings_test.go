// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// recordings is where the suites of real API servers have what ToolHive's operator and its proxyrunner made of MCPServers: all
// objects with their managedFields.
const recordings = "../harness/testdata/toolhive"

// restore brings a cluster to the state in which ToolHive left an MCPServer that was recorded.
func (s *Simulation) restore(recording string) {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(recordings, recording+".yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	var documents []string
	for document := range strings.SplitSeq(string(content), "---\n# ") {
		if _, text, ok := strings.Cut(document, "\n"); ok {
			documents = append(documents, text)
		}
	}
	// Who owns others is asked for by name.
	slices.SortStableFunc(documents, func(a, b string) int { return strings.Count(a, "_UID}") - strings.Count(b, "_UID}") })
	values := []string{"${NAME}", "web", "${NAMESPACE}", "shop"}
	for _, document := range documents {
		text, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(values...).Replace(document)))
		if err != nil {
			s.t.Fatal(err)
		}
		recorded := &unstructured.Unstructured{}
		if err := recorded.UnmarshalJSON(text); err != nil {
			s.t.Fatal(err)
		}
		uid := s.restoreObject(recorded)
		switch recorded.GetKind() {
		case "MCPServer":
			values = append(values, "${SERVER_UID}", uid)
		case "StatefulSet":
			values = append(values, "${BACKEND_UID}", uid)
		}
	}
}

// restoreObject makes an object as it was recorded, at once: it never was anything else.
func (s *Simulation) restoreObject(recorded *unstructured.Unstructured) (uid string) {
	s.t.Helper()
	live := recorded.DeepCopy()
	live.SetNamespace("shop")
	entries, at := live.GetManagedFields(), metav1.NewTime(time.Now())
	live.SetCreationTimestamp(at)
	for i := range entries {
		entries[i].Time, entries[i].FieldsType = &at, "FieldsV1"
	}
	live.SetManagedFields(entries)
	if recorded.GroupVersionKind().Group == appsv1.GroupName && live.GetGeneration() == 0 {
		live.SetGeneration(1) // The recordings leave it out.
	}
	obj := s.decoded(live)
	allocate(obj, nil) // Addresses, too.
	s.Server.Put(s.Server.KindOf(recorded.GroupVersionKind().Group, recorded.GetKind()), obj)
	return string(access(obj).GetUID())
}

// decoded is an object of the type that the server keeps.
func (s *Simulation) decoded(u *unstructured.Unstructured) runtime.Object {
	s.t.Helper()
	k := s.Server.KindOf(u.GroupVersionKind().Group, u.GetKind())
	obj := k.New()
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return u
	}
	text, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(text, obj)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// takeovers are scenarios in which the operator finds what ToolHive has made.
func takeovers() (all []scenario) {
	for _, recording := range []string{"plain", "edited-stdio", "numbers", "policies"} {
		all = append(all, scenario{
			name: "takeover of " + recording, act: func(s *Simulation) { s.restore(recording) },
			mayTake: []string{managers.ToolHiveOperator, managers.ToolHiveRunner}, spare: 1,
		})
	}
	return all
}
