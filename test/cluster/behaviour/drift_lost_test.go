// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// velero is a tool that restores objects from copies.
const velero = "velero"

// loss is a way in which an object comes to be without the entries of ours in its managedFields.
type loss struct {
	// lose does it to one component of an MCPServer.
	lose func(t *testing.T, ns *harness.Namespace, server string, component harness.Component)
	// children tells that it is done to children alone: to restore the MCPServer would make it another one.
	children bool
	// halt keeps the operator from seeing how it is done, and gives it back.
	halt func(t *testing.T, ns *harness.Namespace, running *operator.Process) (resume func())
	// keepers are managers that may keep what is not ours.
	keepers []string
	// remade is set where the objects are others than before: proxies that may have read another ConfigMap are replaced, and
	// that so many times at most. An operator that sees the two ConfigMaps one after the other may write twice.
	remade int
}

var losses = map[string]loss{
	"reset": {
		lose: resetFields,
		halt: func(*testing.T, *harness.Namespace, *operator.Process) func() { return func() {} },
		// Whoever comes first when nobody owns anything is given the rest.
		keepers: []string{ownership.BeforeFirstApply},
	},
	"reset-while-down": {lose: resetFields, halt: whileDown, keepers: []string{ownership.BeforeFirstApply}},
	"restored":         {lose: restoreCopy, children: true, halt: whileFrozen, keepers: []string{velero}, remade: 2},
	"restored-while-down": {
		lose: restoreCopy, children: true, halt: whileDown, keepers: []string{velero}, remade: 1,
	},
	"first-apply-of-another": {
		lose: func(t *testing.T, ns *harness.Namespace, server string, component harness.Component) {
			resetFields(t, ns, server, component)
			ns.MustApply(t, harness.Team, component, server, false, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{harness.ForeignKey: "here"}},
			})
		},
		halt: whileDown, keepers: []string{ownership.BeforeFirstApply, harness.Team},
	},
}

// resetFields takes all claims away in the way that the API offers for it.
func resetFields(t *testing.T, ns *harness.Namespace, server string, component harness.Component) {
	t.Helper()
	ns.MustPatch(t, harness.Hand, component, server, harness.Replace("/metadata/managedFields", []any{map[string]any{}}))
}

// restoreCopy deletes an object and makes it anew from a copy, with labels, annotations and owner references.
func restoreCopy(t *testing.T, ns *harness.Namespace, server string, component harness.Component) {
	t.Helper()
	restoreWith(t, ns, server, component, func(*unstructured.Unstructured) {})
}

// restoreWith is restoreCopy with a change of the copy.
func restoreWith(t *testing.T, ns *harness.Namespace, server string, component harness.Component, change func(*unstructured.Unstructured)) {
	t.Helper()
	restored := ns.MustObject(t, component, server)
	name, background := restored.GetName(), metav1.DeletePropagationBackground
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(restored.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(restored.Object, "status")
	if ip, _, _ := unstructured.NestedString(restored.Object, "spec", "clusterIP"); ip != "" && ip != "None" {
		unstructured.RemoveNestedField(restored.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(restored.Object, "spec", "clusterIPs")
	}
	change(restored)
	harness.Eventually(t, "the copy is there", func(ctx context.Context) error {
		// An operator at work may make the object anew before the copy is made. Then that goes as well.
		err := ns.Objects(component).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		_, err = ns.Objects(component).Create(ctx, restored, metav1.CreateOptions{FieldManager: velero})
		return err
	})
}

func whileDown(t *testing.T, ns *harness.Namespace, running *operator.Process) func() {
	t.Helper()
	harness.Stop(t, running)
	return func() { ns.Operate(t) }
}

func whileFrozen(t *testing.T, _ *harness.Namespace, running *operator.Process) func() {
	t.Helper()
	if err := running.Pause(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := running.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostClaims takes the claims of all writers away. Each gets back just what it had, at the price of one edit of
// managedFields, no field is left without an owner that had one, and a later edit of the MCPServer meets no conflict.
func TestLostClaims(t *testing.T) {
	t.Parallel()
	for name, l := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			running := ns.Operate(t)
			server := ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 2),
				harness.InlineAuthorization, harness.Environment("GONE", "1"), harness.Environment("KEPT", "2")))
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			before := ns.MustObjectsOf(t, name)
			claims, unowned := harness.ClaimsOf(before), allOwnerless(t, before)

			resume := l.halt(t, ns, running)
			mark := ns.Mark(t)
			components := harness.ComponentsOf(server)
			if l.children {
				components = slices.DeleteFunc(components, func(p harness.Component) bool { return p == harness.ServerItself })
			}
			for _, component := range components {
				l.lose(t, ns, name, component)
			}
			resume()
			awaitClaims(t, ns, name, claims)
			awaitLostEvent(t, ns, name)
			ns.AwaitSettled(t, name)
			// One edit for each writer and object.
			want := harness.WriteCount{}
			for _, component := range components {
				item := string(component)
				if component == harness.ServerItself {
					item = "finalizer"
				}
				want[item] += len(harness.Managers(server, component))
			}
			if l.remade > 0 {
				want[string(harness.Proxy)]++
			}
			checkLossWrites(t, ns, name, mark, want, max(0, l.remade-1))
			l.check(t, ns, name, claims, unowned)

			mark = ns.Mark(t)
			ns.Edit(t, name, func(s *v1beta1.MCPServer) {
				s.Spec.Image = harness.OtherImage
				s.Spec.Env = slices.DeleteFunc(s.Spec.Env, func(v v1beta1.EnvVar) bool { return v.Name == "GONE" })
			})
			ns.AwaitSettled(t, name)
			ns.AwaitNoConflict(t, name)
			checkLossWrites(t, ns, name, mark, harness.Once("runconfig", "backend", "proxy"), 0)
			checkEdited(t, ns, name)
			l.check(t, ns, name, nil, unowned)
			env.Numbers.Add("lost claims: objects to which they came back", len(components))
		})
	}
}

// TestLostPort changes a port while nobody owns anything. The earlier one, which the spec does not name any more, goes all the same: it has
// the name of the later one, and the API server refuses two of one name.
func TestLostPort(t *testing.T) {
	t.Parallel()
	const name = "lost-port"
	ns := env.Namespace(t)
	running := ns.Operate(t)
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, name)
	resume := whileDown(t, ns, running)
	for _, component := range []harness.Component{harness.Proxy, harness.ProxyService} {
		resetFields(t, ns, name, component)
	}
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 })
	resume()
	ns.AwaitSettled(t, name)
	ns.AwaitNoConflict(t, name)
	objects := ns.MustObjectsOf(t, name)
	for component, list := range map[harness.Component]struct{ path, number string }{
		harness.Proxy:        {`.spec.template.spec.containers[name="toolhive"].ports`, "containerPort"},
		harness.ProxyService: {".spec.ports", "port"},
	} {
		ports, _ := harness.ValueAt(objects[component].Object, list.path).([]any)
		if len(ports) != 1 || harness.ValueAt(ports[0], "."+list.number) != int64(9090) {
			t.Errorf("%s has the ports %v", component, ports)
		}
	}
}

// check looks at who owns what: our writers what they had, if that is given, and in any case nothing but what they
// claim; the keepers some of the rest, and no field nobody unless nobody owned it before.
func (l loss) check(
	t *testing.T, ns *harness.Namespace, name string, claims map[harness.Component]map[string][]string, unowned map[harness.Component][]string,
) {
	t.Helper()
	objects := ns.MustObjectsOf(t, name)
	if diff := cmp.Diff(claims, harness.ClaimsOf(objects)); claims != nil && diff != "" {
		t.Errorf("what our writers own has changed (-before +after):\n%s", diff)
	}
	for component, now := range allOwnerless(t, objects) {
		lost := slices.DeleteFunc(now, func(path string) bool {
			// The one field of an MCPServer that the API server always sets, to what is as good as nothing: whoever
			// reads it into a Go type does not see it.
			harmless := component == harness.ServerItself && path == ".spec.trustProxyHeaders"
			return harmless || slices.Contains(unowned[component], path)
		})
		if len(lost) > 0 {
			t.Errorf("fields of %s are left without an owner: %v", component, lost)
		}
	}
	for component, object := range objects {
		object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return slices.Contains(l.keepers, e.Manager) && (e.Operation == metav1.ManagedFieldsOperationUpdate || e.Manager == harness.Team)
		}))
		objects[component] = object
	}
	for _, wrong := range harness.StrayOwners(harness.ServerOf(t, objects), objects) {
		t.Error(wrong)
	}
}

// checkEdited looks whether the edit has reached the backend.
func checkEdited(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	backend, err := env.Core.AppsV1().StatefulSets(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mcp := backend.Spec.Template.Spec.Containers[0]
	names := map[string]bool{}
	for _, v := range mcp.Env {
		names[v.Name] = true
	}
	if mcp.Image != harness.OtherImage || names["GONE"] || !names["KEPT"] {
		t.Errorf("the edit was not carried out: image %s, variables %v", mcp.Image, names)
	}
}

// awaitClaims waits until each of our writers owns just what it owned before.
func awaitClaims(t *testing.T, ns *harness.Namespace, name string, want map[harness.Component]map[string][]string) {
	t.Helper()
	harness.Eventually(t, "all writers own what they did", func(ctx context.Context) error {
		objects, err := ns.ObjectsOf(ctx, name)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, harness.ClaimsOf(objects)); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
}

// awaitLostEvent waits for the event that tells of the loss.
func awaitLostEvent(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	harness.Eventually(t, "there is an event", func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == "OwnershipLost" && e.Type == "Warning" {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// systemFields are those that nobody can own, and the status.
var systemFields = []string{
	".apiVersion", ".kind", ".status", ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.resourceVersion",
	".metadata.generation", ".metadata.creationTimestamp", ".metadata.managedFields",
}

// allOwnerless are the leaves of objects that nobody owns, by component. On any object these are defaults of the API server.
func allOwnerless(t *testing.T, objects map[harness.Component]*unstructured.Unstructured) map[harness.Component][]string {
	t.Helper()
	all := map[harness.Component][]string{}
	for component, object := range objects {
		typed, err := harness.SchemaOf(harness.FormOf(component).Kind).ObjectToTyped(object)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := typed.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		fields = fields.Leaves()
		for _, entry := range object.GetManagedFields() {
			owned, err := ownership.Fields(&entry)
			if err != nil {
				t.Fatal(err)
			}
			fields = fields.Difference(owned)
		}
		all[component] = slices.DeleteFunc(harness.Paths(fields), func(path string) bool {
			return slices.ContainsFunc(systemFields, func(system string) bool {
				rest, found := strings.CutPrefix(path, system)
				return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
			})
		})
	}
	return all
}

// checkLossWrites holds the writes since the mark against what they should be. There may be an event for each of them,
// not more than three writes of the status, and some spare ones of the proxy.
func checkLossWrites(t *testing.T, ns *harness.Namespace, name string, since audit.Mark, want harness.WriteCount, spare int) {
	t.Helper()
	ns.AwaitCalm(t, name)
	edits := 0
	for _, n := range want {
		edits += n
	}
	writes := ns.Writes(t, since)
	count := harness.CountWrites(name, writes)
	if count["event"] > edits || count["status"] > 3 {
		t.Errorf("there were %d writes of events and %d of the status", count["event"], count["status"])
	}
	for component, lost := range count.Lost() {
		if others := ns.WritesByOthers(t, since, component, name); lost > others {
			t.Errorf("%d writes of the %s were refused, and others wrote it %d times", lost, component, others)
		}
	}
	if more := count[string(harness.Proxy)] - want[string(harness.Proxy)]; more > 0 && more <= spare {
		want[string(harness.Proxy)] += more
	}
	if diff := cmp.Diff(want, count.Without("event", "status")); diff != "" {
		t.Errorf("what was written is not what should have been (-want +got):\n%s", diff)
		for _, e := range writes {
			t.Logf("%s: %.1000s", e, e.Body)
		}
	}
}
