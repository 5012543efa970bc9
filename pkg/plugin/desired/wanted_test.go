// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
)

var schema managedfields.TypeConverter = applyconfigurations.NewTypeConverter(scheme.Scheme)

func server(transport v1beta1.Transport) *v1beta1.MCPServer {
	s := &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "tools", UID: "u", Generation: 3, Annotations: map[string]string{}},
		Spec:       v1beta1.MCPServerSpec{Image: "example.com/mcp:1", Transport: transport, ProxyPort: 8080},
	}
	if transport != v1beta1.TransportStdio {
		s.Spec.MCPPort = 9000
	}
	return s
}

// world is the objects that there are.
type world map[apply.ObjectRef]*unstructured.Unstructured

func (w world) plan(t *testing.T, s *v1beta1.MCPServer) map[string]desired.Intent {
	t.Helper()
	plan := w.planFrom(t, s, render.References{})
	intents := map[string]desired.Intent{}
	for _, intent := range plan.Intents {
		intents[intent.Writer+" "+intent.Object.String()] = intent
	}
	return intents
}

// settled is the world as the operator has made it.
func settled(t *testing.T, s *v1beta1.MCPServer) world {
	t.Helper()
	w := world{}
	for _, intent := range w.plan(t, s) {
		object := &unstructured.Unstructured{Object: intent.Config()}
		object.SetUID("1")
		object.SetResourceVersion("1")
		if intent.Writer == managers.Proxy {
			// The RunConfig's UID, which is not known before it is there.
			if err := unstructured.SetNestedField(object.Object, "1", "spec", "template", "metadata", "annotations", v1beta1.AnnotationConfigUIDs); err != nil {
				t.Fatal(err)
			}
		}
		typed, err := schema.ObjectToTyped(object)
		if err != nil {
			t.Fatal(err)
		}
		set, err := typed.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		own(t, object, intent.Writer, "Apply", set.Difference(fieldpath.NewSet(
			fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
			fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
			fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
		)))
		w[intent.Object] = object
	}
	return w
}

// own adds an entry to an object's managedFields.
func own(t *testing.T, object *unstructured.Unstructured, manager string, operation metav1.ManagedFieldsOperationType, set *fieldpath.Set) {
	t.Helper()
	text, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: object.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text)),
	}))
}

// replace gives a field another value, in the name of another manager, as the API server does.
func (w world) replace(t *testing.T, ref apply.ObjectRef, manager string, value any, path ...string) {
	t.Helper()
	object := w[ref].DeepCopy()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	parts := make([]any, 0, len(path))
	for _, part := range path {
		parts = append(parts, part)
	}
	taken := fieldpath.NewSet(fieldpath.MakePathOrDie(parts...))
	entries := object.GetManagedFields()
	for i := range entries {
		var set fieldpath.Set
		if err := set.FromJSON(entries[i].FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		text, err := set.Difference(taken).ToJSON()
		if err != nil {
			t.Fatal(err)
		}
		entries[i].FieldsV1 = metav1.NewFieldsV1(string(text))
	}
	object.SetManagedFields(entries)
	own(t, object, manager, "Update", taken)
	w[ref] = object
}

var (
	proxy   = apply.NewObjectRef(managers.Deployment, "tools", "web")
	service = apply.NewObjectRef(managers.ServiceKind, "tools", "mcp-web")
	backend = apply.NewObjectRef(managers.StatefulSet, "tools", "web")
)

const (
	proxyIntent    = managers.Proxy + " deployment.apps/web"
	replicasIntent = managers.ProxyReplicas + " deployment.apps/web"
	backendIntent  = managers.Backend + " statefulset.apps/web"
	serviceIntent  = managers.Service + " service/mcp-web"
)

func TestAllIsWantedWhereNothingIsThere(t *testing.T) {
	intents := world{}.plan(t, server(v1beta1.TransportSSE))
	if len(intents) < 9 {
		t.Errorf("there are %d intents", len(intents))
	}
	for name, intent := range intents {
		source := (&unstructured.Unstructured{Object: intent.Config()}).GetAnnotations()[v1beta1.AnnotationSource]
		if intent.Same() || len(intent.Contested) > 0 || source != "u/3" {
			t.Errorf("%s: same %t, contested %v, source %q", name, intent.Same(), intent.Contested, source)
		}
		if waits := intent.Waits != ""; waits != (name == proxyIntent) {
			t.Errorf("%s waits: %q", name, intent.Waits)
		}
	}
}

func TestForeignFieldsAreNothingToDo(t *testing.T) {
	s := server(v1beta1.TransportStreamableHTTP)
	w := settled(t, s)
	s.Generation = 7 // An edit that changes nothing of the children.
	w.replace(t, proxy, "kubectl-label", "x", "metadata", "labels", "theirs")
	w.replace(t, proxy, "hpa", int64(4), "spec", "replicas")
	for name, intent := range w.plan(t, s) {
		if !intent.Same() {
			t.Errorf("%s differs: %+v", name, intent)
		}
	}
}

func TestAFieldOfAnotherManagerIsContestedUntilItIsLeft(t *testing.T) {
	labels := []string{"spec", "template", "metadata", "labels", "app"}
	for name, test := range map[string]struct {
		yield     string
		contested []string
		same      bool
	}{
		"contested":              {contested: []string{".spec.template.metadata.labels.app"}},
		"left to others":         {yield: ".spec.template.metadata.labels", same: true},
		"something else is left": {yield: "deployment.apps/other:.spec.template", contested: []string{".spec.template.metadata.labels.app"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(v1beta1.TransportSSE)
			w := settled(t, s)
			w.replace(t, proxy, "kubectl-edit", "theirs", labels...)
			s.Annotations[v1beta1.AnnotationYield] = test.yield
			intent := w.plan(t, s)[proxyIntent]
			var paths []string
			for _, c := range intent.Contested {
				paths = append(paths, c.Path)
				if c.Theirs != "theirs" || c.Ours != "mcpserver" || len(c.Owners) != 1 || c.Owners[0].Manager != "kubectl-edit" {
					t.Errorf("contested: %+v", c)
				}
			}
			if diff := cmp.Diff(test.contested, paths); diff != "" {
				t.Errorf("contested (-want +got):\n%s", diff)
			}
			// What is left to others, and still owned, is given up; then there is nothing left to do.
			if intent.Same() != test.same || (len(intent.Moved(apply.CauseYielded)) > 0) != test.same {
				t.Errorf("same: %t, released %v", intent.Same(), intent.Moved(apply.CauseYielded))
			}
		})
	}
}

// A dry run sees fields that are given up as they are.
// A source that the MCPServer has never had is contested like any other field.
func TestForgedSourceIsContested(t *testing.T) {
	for _, forged := range []string{"u/999", "whatever", "other/1"} {
		s := server(v1beta1.TransportStreamableHTTP)
		w := settled(t, s)
		w.replace(t, proxy, "kubectl-annotate", forged, "metadata", "annotations", v1beta1.AnnotationSource)
		intent := w.plan(t, s)[proxyIntent]
		if intent.Same() || len(intent.Contested) != 1 {
			t.Fatalf("%s: it is the same: %t, contested: %+v", forged, intent.Same(), intent.Contested)
		}
		c := intent.Contested[0]
		if c.Path != ".metadata.annotations."+v1beta1.AnnotationSource || c.Theirs != forged || c.Ours != "u/3" ||
			len(c.Owners) != 1 || c.Owners[0].Manager != "kubectl-annotate" {
			t.Errorf("contested: %+v", c)
		}
	}
}

func TestTrialKeepsWhatIsReleased(t *testing.T) {
	s := server(v1beta1.TransportSSE)
	w := settled(t, s)
	s.Annotations[v1beta1.AnnotationYield] = `.spec.template.spec.containers[name="toolhive"].env`
	s.Spec.Image = "example.com/mcp:2"
	intent := w.plan(t, s)[proxyIntent]
	env := fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "toolhive"), "env")
	// The generation is kept from others.
	if left, _ := ownership.ValueAt(intent.Config(), env).([]any); len(left) != 1 || len(intent.Moved(apply.CauseYielded)) == 0 {
		t.Errorf("it wants %v, and releases %v", left, intent.Moved(apply.CauseYielded))
	}
	sorted := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	trial, err := intent.Trial(schema)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ownership.ValueAt(w[proxy].Object, env), ownership.ValueAt(trial, env), sorted); diff != "" {
		t.Errorf("environment in the dry run (-live +trial):\n%s", diff)
	}
}

// The settings of another update strategy go, unless somebody owns them or they are left to others together with the strategy.
func TestSettingsOfAnotherStrategyAreRemoved(t *testing.T) {
	partition := []string{"spec", "updateStrategy", "rollingUpdate", "partition"}
	const path = ".spec.updateStrategy.rollingUpdate.partition"
	for name, test := range map[string]struct {
		owner, yield       string
		removed, contested []string
		left               bool
	}{
		"nobody's":                     {removed: []string{path}},
		"somebody's":                   {owner: "kubectl-edit", contested: []string{path}},
		"left to others by themselves": {owner: "kubectl-edit", yield: path, contested: []string{path}},
		"left to others":               {owner: "kubectl-edit", yield: ".spec.updateStrategy", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(v1beta1.TransportSSE)
			w := settled(t, s)
			if test.owner != "" {
				w.replace(t, backend, test.owner, int64(1), partition...)
			} else if err := unstructured.SetNestedField(w[backend].Object, int64(1), partition...); err != nil {
				t.Fatal(err)
			}
			s.Annotations[v1beta1.AnnotationBackendUpdateStrategy], s.Annotations[v1beta1.AnnotationYield] = "OnDelete", test.yield
			intent := w.plan(t, s)[backendIntent]
			var contested []string
			for _, c := range intent.Contested {
				contested = append(contested, c.Path)
			}
			if diff := cmp.Diff(test.removed, intent.Moved(apply.CauseUnset)); diff != "" || intent.Same() != test.left {
				t.Errorf("removed (-want +got), same %t:\n%s", intent.Same(), diff)
			}
			if diff := cmp.Diff(test.contested, contested); diff != "" {
				t.Errorf("contested (-want +got):\n%s", diff)
			}
			want := map[string]any{"type": "OnDelete", "rollingUpdate": map[string]any{"partition": int64(1)}}
			if len(test.removed) > 0 {
				delete(want, "rollingUpdate")
			}
			if len(test.contested) > 0 || test.left {
				delete(want, "type") // Nothing is written of it.
			}
			strategy, _, _ := unstructured.NestedMap(intent.After.Object, "spec", "updateStrategy")
			if diff := cmp.Diff(want, strategy); diff != "" {
				t.Errorf("update strategy afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

// A gate that is closed anyhow is no reason to restart the pods, and neither is it one when the template differs only in
// what is left to others: the operator looks at the gate once it has left that.
func TestGateStaysWhereTheRestIsLeftToOthers(t *testing.T) {
	gate := []string{"spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration}
	const yielded = `statefulset.apps/web:.spec.template.metadata.labels.app`
	for name, test := range map[string]struct {
		theirs bool
		yield  string
		same   bool
	}{
		"nothing is left":                          {same: true},
		"somebody has a label":                     {theirs: true, yield: yielded, same: true},
		"nobody has it yet":                        {yield: yielded, same: true},
		"somebody has a label that is not left":    {theirs: true},
		"somebody has it, and another one is left": {theirs: true, yield: `statefulset.apps/web:.spec.template.metadata.labels.other`},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(v1beta1.TransportSSE)
			w := settled(t, s)
			if err := unstructured.SetNestedField(w[backend].Object, "7", gate...); err != nil {
				t.Fatal(err)
			}
			if test.theirs {
				w.replace(t, backend, "kubectl-edit", "theirs", "spec", "template", "metadata", "labels", "app")
			}
			s.Annotations[v1beta1.AnnotationYield] = test.yield
			intent := w.plan(t, s)[backendIntent]
			if intent.Same() != test.same {
				t.Errorf("same: %t, contested %v, released %v", intent.Same(), intent.Contested, intent.Moved(apply.CauseYielded))
			}
			want := intent.Config()
			if test.same {
				want = intent.After.Object // Nothing is applied.
			}
			if got := ownership.ValueAt(want, fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)); (got == "7") != test.same {
				t.Errorf("it wants the gate to be %v", got)
			}
		})
	}
}

// The same value of two owners is no conflict, and neither is a field that was taken away: it comes back.
func TestASharedOrRemovedFieldIsNotContested(t *testing.T) {
	s := server(v1beta1.TransportSSE)
	w := settled(t, s)
	own(t, w[proxy], "argocd-controller", "Apply", fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", "app")))
	unstructured.RemoveNestedField(w[service].Object, "metadata", "labels", "app")
	intents := w.plan(t, s)
	if got := intents[proxyIntent]; !got.Same() || len(got.Contested) > 0 {
		t.Errorf("shared: %+v", got.Contested)
	}
	if got := intents[serviceIntent]; got.Same() || len(got.Contested) > 0 {
		t.Errorf("removed: same %t, contested %+v", got.Same(), got.Contested)
	}
}

func TestReplicasAreSetAndGivenUp(t *testing.T) {
	three := int32(3)
	s := server(v1beta1.TransportSSE)
	s.Spec.Replicas = &three
	w := settled(t, server(v1beta1.TransportSSE))
	if got := w.plan(t, s)[replicasIntent]; got.Same() || ownership.ValueAt(got.Config(), fieldpath.MakePathOrDie("spec", "replicas")) != int64(3) {
		t.Errorf("set: %+v", got)
	}
	own(t, w[proxy], managers.ProxyReplicas, "Apply", fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas")))
	s.Spec.Replicas = nil
	if got := w.plan(t, s)[replicasIntent]; got.Config() != nil || !cmp.Equal(got.Moved(apply.CauseYielded), []string{".spec.replicas"}) {
		t.Errorf("released: %+v", got)
	}
	stdio := server(v1beta1.TransportStdio)
	w = settled(t, stdio)
	if got, ok := w.plan(t, stdio)[replicasIntent]; ok {
		t.Errorf("one pod: %+v", got)
	}
	w.replace(t, proxy, "kubectl", int64(2), "spec", "replicas")
	if got := w.plan(t, stdio)[replicasIntent]; got.Same() || len(got.Contested) > 0 || ownership.ValueAt(got.Config(), fieldpath.MakePathOrDie("spec", "replicas")) != int64(1) {
		t.Errorf("capped: %+v", got)
	}
	none := int32(0)
	stdio.Spec.Replicas = &none
	if got := w.plan(t, stdio)[replicasIntent]; got.Same() || len(got.Contested) > 0 || ownership.ValueAt(got.Config(), fieldpath.MakePathOrDie("spec", "replicas")) != int64(0) {
		t.Errorf("capped where none is asked for: %+v", got)
	}
}

func TestAnInvalidMCPServerIsAnError(t *testing.T) {
	s := server(v1beta1.TransportSSE)
	s.Name = "mcpserver"
	_, err := desired.New(desired.Input{Server: s, Child: func(apply.ObjectRef) *unstructured.Unstructured { return nil }})
	if _, ok := errors.AsType[*render.InvalidError](err); !ok {
		t.Errorf("error %v", err)
	}
}

func TestWhatIdentifiesIsNotYieldable(t *testing.T) {
	for path, want := range map[string]bool{
		`["spec","replicas"]`: true, `["spec","selector","matchLabels"]`: false, `["metadata","ownerReferences"]`: false,
		`["metadata","annotations","freehold.dev/source"]`: false, `["metadata","annotations","mine"]`: true,
	} {
		var parts []any
		if err := json.Unmarshal([]byte(path), &parts); err != nil {
			t.Fatal(err)
		}
		if got := request.Yieldable(proxy, fieldpath.MakePathOrDie(parts...)); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	if request.Yieldable(apply.ObjectRef{Kind: managers.ConfigMap}, fieldpath.MakePathOrDie("data")) {
		t.Error("the RunConfig may be left to others")
	}
}
