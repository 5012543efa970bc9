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
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// proxyImage is the path of the image of the proxy, as a conflict names it.
const proxyImage = `.spec.template.spec.containers[name="toolhive"].image`

// settledScene is an MCPServer that has settled, with an operator that has nothing to do.
func settledScene(t *testing.T, name string, changes ...harness.Change) *harness.Namespace {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, changes...))
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
	return ns
}

// asksBy asks by an annotation of the MCPServer.
func asksBy(annotation, value string) harness.Change {
	return func(server *v1beta1.MCPServer) {
		if server.Annotations == nil {
			server.Annotations = map[string]string{}
		}
		server.Annotations[annotation] = value
	}
}

// awaitEvent waits for a Warning about an MCPServer whose note has all parts.
func awaitEvent(t *testing.T, ns *harness.Namespace, name, reason string, parts ...string) {
	t.Helper()
	harness.Eventually(t, "there is an event "+reason, func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			missing := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(e.Note, part) })
			if e.Regarding.Name == name && e.Reason == reason && e.Type == "Warning" && !missing {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// putEntriesBack gives an object the managedFields that it had before, and no other value.
func putEntriesBack(t *testing.T, ns *harness.Namespace, component harness.Component, name string, before *unstructured.Unstructured) {
	t.Helper()
	ns.MustPatch(t, harness.Hand, component, name, harness.Replace("/metadata/managedFields", before.GetManagedFields()))
}

const sourcePath = "/metadata/annotations/freehold.dev~1source"

// TestForgedSource makes children tell of a generation that the MCPServer has never had. One request finds that out, and
// the annotation is a contested field like any other then: the conflict is told with both sides, costs nothing while it
// stands, whatever becomes of the pods, and ends when the annotation is taken.
func TestForgedSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, annotation, writer string
		component                harness.Component
	}{
		{"forged-proxy", v1beta1.AnnotationSource, managers.Proxy, harness.Proxy},
		{"forged-runconfig", v1beta1.AnnotationSource, managers.RunConfig, harness.RunConfig},
		{"forged-replicas", v1beta1.AnnotationReplicasSource, managers.BackendReplicas, harness.Backend},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ns := settledScene(t, c.name, harness.Replicas(1, 1))
			server, err := ns.Servers.Get(t.Context(), c.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mark, path := ns.Mark(t), "/metadata/annotations/"+strings.ReplaceAll(c.annotation, "/", "~1")
			object := ns.MustPatch(t, harness.Hand, c.component, c.name, harness.Replace(path, fmt.Sprintf("%s/999", server.UID)))
			ns.AwaitConflict(t, c.name, harness.Hand, c.writer, c.annotation)
			ns.WatchStanding(t, c.name, mark)
			count := harness.CountWrites(c.name, ns.Writes(t, mark))
			if diff := gocmp.Diff(harness.Once("finalizer", "event"), count.Without("status")); diff != "" {
				t.Errorf("it should cost one confirmation and one event (-want +got):\n%s", diff)
			}

			selector := fmt.Sprintf("%s/%s:.metadata.annotations.%s", resourceOf(c.component), object.GetName(), c.annotation)
			ns.Edit(t, c.name, asksBy(v1beta1.AnnotationTake, selector))
			ns.AwaitNoConflict(t, c.name)
			harness.Eventually(t, "the source is as it was", func(ctx context.Context) error {
				object, err := ns.Object(ctx, c.component, c.name)
				if err != nil {
					return err
				}
				if got := object.GetAnnotations()[c.annotation]; got != fmt.Sprintf("%s/%d", server.UID, server.Generation) {
					return fmt.Errorf("it is %s", got)
				}
				return nil
			})
			ns.AwaitCalm(t, c.name)
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}

// TestForgedSourceOfNobody forges the source, and an image along with it, and puts the managedFields back as they were:
// nobody else owns either, and both are written again.
func TestForgedSourceOfNobody(t *testing.T) {
	t.Parallel()
	const name = "forged"
	for how, source := range map[string]string{"newer": "/999", "unreadable": "?"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			running := ns.Operate(t)
			server := ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			before := ns.MustObject(t, harness.Proxy, name)
			resume := whileFrozen(t, ns, running)
			ns.MustPatch(t, harness.Hand, harness.Proxy, name,
				harness.Replace(sourcePath, string(server.UID)+source), harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
			putEntriesBack(t, ns, harness.Proxy, name, before)
			resume()
			awaitSame(t, ns, harness.Proxy, name, before)
			awaitEvent(t, ns, name, "SourceReplaced", string(server.UID)+source, "freehold-proxy")
			ns.AwaitNoConflict(t, name)
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}

// resourceOf is the kind of a component as kubectl takes it.
func resourceOf(component harness.Component) string {
	form := harness.FormOf(component)
	return strings.TrimSuffix(strings.ToLower(form.Kind.Kind)+"."+form.Kind.Group, ".")
}

// awaitSame waits until an object has the spec, data, labels, annotations and owners that it had before.
func awaitSame(t *testing.T, ns *harness.Namespace, component harness.Component, name string, before *unstructured.Unstructured) {
	t.Helper()
	relevant := func(object *unstructured.Unstructured) []any {
		annotations := object.GetAnnotations()
		delete(annotations, "deployment.kubernetes.io/revision")
		return []any{
			object.Object["spec"], object.Object["data"], object.GetLabels(), annotations,
			harness.ClaimsOf(map[harness.Component]*unstructured.Unstructured{component: object}),
		}
	}
	harness.Eventually(t, "the object is as it was", func(ctx context.Context) error {
		object, err := ns.Object(ctx, component, name)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(relevant(before), relevant(object)); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
}

// TestAYieldedContainerReplacesNoPod leaves the whole container of the proxy to others, and what is above it. The one variable of it that
// cannot be left stays Freehold's; no value changes, no pod is replaced, and others may write the rest.
func TestAYieldedContainerReplacesNoPod(t *testing.T) {
	t.Parallel()
	const toolhive = `.spec.template.spec.containers[name="toolhive"]`
	gate := toolhive + `.env[name="THV_MCPSERVER_GENERATION"].value`
	for name, path := range map[string]string{
		"yield-container": toolhive, "yield-containers": ".spec.template.spec.containers",
		"yield-pod": ".spec.template.spec", "yield-template": ".spec.template",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := settledScene(t, name)
			before, mark := ns.MustObject(t, harness.Proxy, name), ns.Mark(t)
			ns.Edit(t, name, asksBy(v1beta1.AnnotationYield, "deployment.apps/"+name+":"+path))
			ns.AwaitServer(t, name, "tells what is left", func(server *v1beta1.MCPServer) error {
				return conditionIs(server, v1beta1.ConditionFieldsYielded, metav1.ConditionTrue)
			})
			ns.AwaitCalm(t, name)
			count := harness.CountWrites(name, ns.Writes(t, mark))
			if diff := gocmp.Diff(harness.Once("proxy", "event"), count.Without("status")); diff != "" {
				t.Errorf("it should cost one edit of managedFields (-want +got):\n%s", diff)
			}
			after := ns.MustObject(t, harness.Proxy, name)
			if diff := gocmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
				t.Errorf("the spec has changed (-before +after):\n%s", diff)
			}
			for path, want := range map[string][]string{
				gate: {"freehold-proxy Apply"}, toolhive + ".name": {"freehold-proxy Apply"}, proxyImage: nil, toolhive + ".args": nil,
			} {
				if got := harness.OwnersAt(after, path); !slices.Equal(got, want) {
					t.Errorf("%s is owned by %q, want %q", path, got, want)
				}
			}

			mark = ns.Mark(t)
			ns.MustPatch(t, harness.Hand, harness.Proxy, name, harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
			ns.AwaitSettled(t, name)
			ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:2" })
			ns.AwaitSettled(t, name)
			ns.AwaitNoConflict(t, name)
			ns.AwaitCalm(t, name)
			if image := harness.ValueAt(ns.MustObject(t, harness.Proxy, name).Object, proxyImage); image != "example.com/other:1" {
				t.Errorf("the image is %v", image)
			}
			for item := range harness.CountWrites(name, ns.Writes(t, mark)) {
				if strings.Contains(item, "409") {
					t.Errorf("a conflict about what was left: %s", item)
				}
			}
		})
	}
}

func conditionIs(server *v1beta1.MCPServer, conditionType string, want metav1.ConditionStatus) error {
	for _, c := range server.Status.Conditions {
		if c.Type == conditionType && c.Status == want {
			return nil
		}
	}
	return fmt.Errorf("condition %s is not %s: %+v", conditionType, want, server.Status.Conditions)
}

// TestAConflictEndsWithAChangeBackWithinASecond changes a label and changes it back within a second, which managedFields cannot tell from
// one change. The operator has seen the first one, and the conflict ends with the second. No other test runs meanwhile: beside others, the
// operator may take longer than the second to meet the first change.
func TestAConflictEndsWithAChangeBackWithinASecond(t *testing.T) {
	const name = "back"
	ns := settledScene(t, name)
	value := ns.MustObject(t, harness.Proxy, name).GetLabels()["toolhive"]
	label := func(value string) *unstructured.Unstructured {
		return ns.MustPatch(t, harness.Hand, harness.Proxy, name, harness.Replace("/metadata/labels/toolhive", value))
	}
	since := func(object *unstructured.Unstructured) metav1.Time {
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == harness.Hand {
				return *entry.Time
			}
		}
		t.Fatalf("%s has no entry", harness.Hand)
		return metav1.Time{}
	}
	const most = 20
	for range most {
		mark := ns.Mark(t)
		<-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // Entries tell whole seconds: let one begin.
		there := since(label("theirs"))
		ns.AwaitWrites(t, mark, "the operator meets the label", func(events []*audit.Event) bool {
			return slices.ContainsFunc(events, func(e *audit.Event) bool { return e.FieldManager == managers.Proxy && e.Code == 409 })
		})
		back := since(label(value))
		ns.AwaitNoConflict(t, name)
		ns.AwaitCalm(t, name)
		if back.Equal(&there) {
			return
		}
	}
	t.Errorf("in %d tries the label was never there and back within a second", most)
}
