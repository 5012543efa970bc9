// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// recording is what ToolHive's operator and its proxyrunner had made of an MCPServer on a real node: all objects with
// their managedFields, but for what the control plane adds to them. The name of the MCPServer, its namespace, its UID and
// that of its StatefulSet are placeholders.
type recording map[harness.Component]string

// The placeholders of a recording.
const (
	placeName       = "${NAME}"
	placeNamespace  = "${NAMESPACE}"
	placeServerUID  = "${SERVER_UID}"
	placeBackendUID = "${BACKEND_UID}"
)

func readRecording(t *testing.T, of string) recording {
	t.Helper()
	return harness.ReadFixture(t, of)
}

// object returns an object of the recording, with values for placeholders.
func (r recording) object(t *testing.T, component harness.Component, values ...string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(values...).Replace(r[component])))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return object
}

// order is that in which ToolHive makes the components. A reference to an owner needs its UID.
var order = []harness.Component{
	harness.ProxyAccount, harness.BackendAccount, harness.ProxyRole, harness.ProxyBinding, harness.RunConfig,
	harness.InlineAuthz, harness.Backend, harness.HeadlessService, harness.BackendService, harness.ProxyService,
	harness.Proxy,
}

// installation is a namespace in which ToolHive was at work.
type installation struct{ *harness.Namespace }

func newInstallation(t *testing.T) *installation {
	t.Helper()
	return &installation{env.Namespace(t)}
}

// install makes MCPServers of these names and their children as ToolHive has left those that were recorded, and waits
// until their pods run. The API server stamps objects and managedFields with whole seconds, and an operator that finds no
// record goes by these: so install ends in a later second than that of the last object.
func (s *installation) install(t *testing.T, of string, names ...string) {
	t.Helper()
	recorded := readRecording(t, of)
	for _, name := range names {
		s.make(t, recorded, name)
	}
	for _, name := range names {
		s.awaitRolledOut(t, name)
	}
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now)) //nolint:forbidigo // It is the clock that must go on.
}

func (s *installation) make(t *testing.T, recorded recording, name string) {
	t.Helper()
	values := []string{placeName, name, placeNamespace, s.Name}
	server := s.makeServer(t, recorded.object(t, harness.ServerItself, values...))
	values = append(values, placeServerUID, string(server.GetUID()))
	for _, component := range order {
		if recorded[component] == "" {
			continue
		}
		made := s.makeChild(t, component, name, recorded.object(t, component, values...))
		if component == harness.Backend {
			values = append(values, placeBackendUID, string(made.GetUID()))
		}
	}
}

// makeServer makes an MCPServer by the same steps as in life: its author makes it and edits it until it has the recorded
// generation, and ToolHive's operator adds the finalizer and the status.
func (s *installation) makeServer(t *testing.T, recorded *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	client, ctx := s.Objects(harness.ServerItself), t.Context()
	must := func(object *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	var live *unstructured.Unstructured
	for generation := int64(1); generation <= recorded.GetGeneration(); generation++ {
		next := recorded.DeepCopy()
		if generation < recorded.GetGeneration() {
			next.Object["spec"].(map[string]any)["endpointPrefix"] = fmt.Sprint("/", generation)
		}
		if live == nil {
			bare(next)
			live = must(client.Create(ctx, next, metav1.CreateOptions{FieldManager: harness.Author}))
			continue
		}
		live.Object["spec"] = next.Object["spec"]
		live = must(client.Update(ctx, live, metav1.UpdateOptions{FieldManager: harness.Author}))
	}
	operator := metav1.UpdateOptions{FieldManager: managers.ToolHiveOperator}
	live.SetFinalizers(recorded.GetFinalizers())
	live = must(client.Update(ctx, live, operator))
	if live.GetGeneration() != recorded.GetGeneration() {
		t.Fatalf("MCPServer %s has generation %d, not %d", live.GetName(), live.GetGeneration(), recorded.GetGeneration())
	}
	live.Object["status"] = recorded.Object["status"]
	return must(client.UpdateStatus(ctx, live, operator))
}

// bare takes away what is not for the maker of an object to say.
func bare(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	object.SetFinalizers(nil)
	object.SetGeneration(0)
	delete(object.Object, "status")
}

// makeChild makes an object in the ways in which its managers, as recorded, have written it: the first makes it, the others
// add what is theirs, and what an apply has in common with an update it finds there and applies as well.
func (s *installation) makeChild(t *testing.T, component harness.Component, server string, recorded *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	var live *unstructured.Unstructured
	var err error
	replicas, counted, _ := unstructured.NestedInt64(recorded.Object, "spec", "replicas")
	scaler, added := "kubectl", addedFields(t, recorded)
	for _, entry := range recorded.GetManagedFields() {
		switch {
		case entry.Subresource == "scale":
			scaler = entry.Manager
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			live, err = s.Apply(t.Context(), entry.Manager, component, server, true, applied(t, recorded, &entry, added))
		case live != nil:
			options := metav1.UpdateOptions{FieldManager: entry.Manager}
			live, err = s.Objects(component).Update(t.Context(), with(t, live, applied(t, recorded, &entry, nothing)), options)
		default:
			first := without(t, recorded, added)
			bare(first)
			if counted && !slices.Contains(harness.ManagersOf(recorded, ".spec.replicas"), entry.Manager) {
				// Somebody has scaled it since.
				unstructured.RemoveNestedField(first.Object, "spec", "replicas")
			}
			live, err = s.Objects(component).Create(t.Context(), first, metav1.CreateOptions{FieldManager: entry.Manager})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range recorded.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || fieldsOf(t, &entry).Intersection(added).Empty() {
			continue
		}
		if live, err = s.Apply(t.Context(), entry.Manager, component, server, true, applied(t, recorded, &entry, nothing)); err != nil {
			t.Fatal(err)
		}
	}
	if now, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); counted && now != replicas {
		s.scale(t, component, server, scaler, replicas)
	}
	return live
}

var nothing = &fieldpath.Set{}

// fieldsOf are the fields that an entry of managedFields names, without those that hold others.
func fieldsOf(t *testing.T, entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	t.Helper()
	fields, err := ownership.Fields(entry)
	if err != nil {
		t.Fatal(err)
	}
	return fields.Leaves()
}

// addedFields are those that updates have added to an object after its first writer made it.
func addedFields(t *testing.T, recorded *unstructured.Unstructured) *fieldpath.Set {
	t.Helper()
	added, made := nothing, false
	for _, entry := range recorded.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		if made && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			added = added.Union(fieldsOf(t, &entry))
		}
		made = true
	}
	return added
}

func without(t *testing.T, object *unstructured.Unstructured, fields *fieldpath.Set) *unstructured.Unstructured {
	t.Helper()
	whole, err := harness.TypedOf(object)
	if err != nil {
		t.Fatal(err)
	}
	return unstructuredOf(t, whole.RemoveItems(fields))
}

func with(t *testing.T, object *unstructured.Unstructured, fields map[string]any) *unstructured.Unstructured {
	t.Helper()
	more := &unstructured.Unstructured{Object: fields}
	more.SetGroupVersionKind(object.GroupVersionKind())
	merged, err := harness.TypedOf(object)
	if err != nil {
		t.Fatal(err)
	}
	addition, err := harness.TypedOf(more)
	if err != nil {
		t.Fatal(err)
	}
	if merged, err = merged.Merge(addition); err != nil {
		t.Fatal(err)
	}
	return unstructuredOf(t, merged)
}

func unstructuredOf(t *testing.T, object *typed.TypedValue) *unstructured.Unstructured {
	t.Helper()
	fields, ok := object.AsValue().Unstructured().(map[string]any)
	if !ok {
		t.Fatal("this is no object")
	}
	return (&unstructured.Unstructured{Object: fields}).DeepCopy()
}

// applied are the fields of an object that an entry of its managedFields names, but for some.
func applied(
	t *testing.T, object *unstructured.Unstructured, entry *metav1.ManagedFieldsEntry, but *fieldpath.Set,
) map[string]any {
	t.Helper()
	fields := fieldsOf(t, entry).Difference(but)
	whole, err := harness.TypedOf(object)
	if err != nil {
		t.Fatal(err)
	}
	extracted, ok := whole.ExtractItems(fields, typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	if !ok {
		t.Fatalf("%s has applied no fields", entry.Manager)
	}
	present, err := whole.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	// ToolHive's runner applies empty values too, which no object shows.
	fields.Difference(present).Iterate(func(path fieldpath.Path) {
		field := *path[len(path)-1].FieldName
		empty, known := map[string]any{"value": "", "stdin": false, "tty": false}[field]
		if !known {
			t.Fatalf("%s has applied %s, which the recording lacks", entry.Manager, path)
		}
		parentOf(extracted, path)[field] = empty
	})
	return extracted
}

// parentOf returns what the last element of a path is a field of. Items of lists have names.
func parentOf(object map[string]any, path fieldpath.Path) map[string]any {
	var at any = object
	for _, element := range path[:len(path)-1] {
		switch {
		case element.FieldName != nil:
			at = at.(map[string]any)[*element.FieldName]
		case element.Key != nil:
			for _, item := range at.([]any) {
				if item.(map[string]any)["name"] == (*element.Key)[0].Value.AsString() {
					at = item
					break
				}
			}
		}
	}
	return at.(map[string]any)
}

// scale sets the number of pods as autoscalers and kubectl scale do.
func (s *installation) scale(t *testing.T, component harness.Component, server, manager string, replicas int64) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Objects(component).Patch(t.Context(), harness.FormOf(component).Name(server), types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: manager}, "scale")
	if err != nil {
		t.Fatal(err)
	}
}

// awaitRolledOut waits until both workloads have the pods that they should.
func (s *installation) awaitRolledOut(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, "the pods of "+name, func(ctx context.Context) error {
		for _, component := range []harness.Component{harness.Backend, harness.Proxy} {
			object, err := s.Object(ctx, component, name)
			if err != nil {
				return err
			}
			wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
			for _, field := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
				if got, _, _ := unstructured.NestedInt64(object.Object, "status", field); got != wanted {
					return fmt.Errorf("%s has %s %d, not %d", component, field, got, wanted)
				}
			}
		}
		return nil
	})
}

// TestRecordingsComeToLife makes what was recorded, and looks whether it is owned as it was.
func TestRecordingsComeToLife(t *testing.T) {
	t.Parallel()
	for _, of := range harness.Fixtures(t) {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			s, recorded := newInstallation(t), readRecording(t, of)
			s.install(t, of, "again")
			objects := s.MustObjectsOf(t, "again")
			if len(objects) != len(recorded) {
				t.Errorf("there are %d objects, and %d were recorded", len(objects), len(recorded))
			}
			for component := range recorded {
				want := recorded.object(t, component, placeName, "again", placeNamespace, s.Name,
					placeServerUID, string(objects[harness.ServerItself].GetUID()),
					placeBackendUID, string(objects[harness.Backend].GetUID()))
				if diff := cmp.Diff(holdings(t, want), holdings(t, objects[component])); diff != "" {
					t.Errorf("%s: who owns what (-recorded +made):\n%s", component, diff)
				}
			}
		})
	}
}

// holdings are the fields of an object by who owns them, but for the status that the control plane writes.
func holdings(t *testing.T, object *unstructured.Unstructured) map[string][]string {
	t.Helper()
	held := map[string][]string{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == "kube-controller-manager" && entry.Subresource == "status" {
			continue
		}
		fields, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		owner := fmt.Sprintf("%s %s %q %s", entry.Manager, entry.Operation, entry.Subresource, entry.APIVersion)
		// Freehold's definitions give each object a status, so no manager owns it as a whole. Those of the recordings did not.
		held[owner] = append(held[owner], slices.DeleteFunc(harness.Paths(fields), func(path string) bool { return path == ".status" })...)
	}
	return held
}
