// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"encoding/json"
	"maps"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestValuesChangedBehindTheRecordComeBack changes values and makes managedFields tell nothing of it, while the operator runs, while it
// does not see it, and while it is down. The values come back, and nothing is written afterwards.
func TestValuesChangedBehindTheRecordComeBack(t *testing.T) {
	t.Parallel()
	drifts := map[string]struct {
		component  harness.Component
		operations []harness.Operation
	}{
		"image":     {harness.Proxy, []harness.Operation{harness.Replace(harness.FirstContainer+"/image", "example.com/other:1")}},
		"label":     {harness.Backend, []harness.Operation{harness.Replace("/metadata/labels/toolhive", "theirs")}},
		"component": {harness.RunConfig, []harness.Operation{harness.Replace("/metadata/labels/toolhive.stacklok.io~1component", "theirs")}},
	}
	halts := map[string]func(*testing.T, *harness.Namespace, *operator.Process) (resume func()){
		"seen": nil, "frozen": whileFrozen, "down": whileDown,
	}
	for what, drift := range drifts {
		for how, halt := range halts {
			name := what + "-" + how
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ns := env.Namespace(t)
				running := ns.Operate(t)
				ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
				ns.AwaitSettled(t, name)
				ns.AwaitCalm(t, name)
				before := ns.MustObject(t, drift.component, name)
				resume := func() {}
				if halt != nil {
					resume = halt(t, ns, running)
				}
				ns.MustPatch(t, harness.Hand, drift.component, name, drift.operations...)
				if halt == nil {
					ns.AwaitConflict(t, name, harness.Hand)
				}
				putEntriesBack(t, ns, drift.component, name, before)
				resume()
				awaitSame(t, ns, drift.component, name, before)
				ns.AwaitSettled(t, name)
				ns.AwaitNoConflict(t, name)
				ns.AwaitCalm(t, name)
				ns.Quiet(t, ns.Mark(t), harness.Calm)
			})
		}
	}
}

// TestASpoiltRecordIsRepaired makes our entry name what is not there, be there twice, and own nothing. Each time the next edit of the
// MCPServer is carried out, and our writer owns just what it applies.
func TestASpoiltRecordIsRepaired(t *testing.T) {
	t.Parallel()
	const ghost = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"ghost\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	for name, spoil := range map[string]func(own map[string]any) []any{
		"ghost": func(own map[string]any) []any {
			fields := map[string]any{}
			if err := json.Unmarshal([]byte(ghost), &fields); err != nil {
				t.Fatal(err)
			}
			own["fieldsV1"] = fields
			return []any{own}
		},
		"twice": func(own map[string]any) []any {
			twin := map[string]any{}
			maps.Copy(twin, own)
			twin["fieldsV1"] = map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:toolhive": map[string]any{}}}}
			return []any{own, twin}
		},
		"empty": func(own map[string]any) []any {
			own["fieldsV1"] = map[string]any{"f:spec": map[string]any{"f:minReadySeconds": map[string]any{}}}
			return []any{own}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := settledScene(t, name)
			before := ns.MustObject(t, harness.Backend, name)
			entries, _, err := unstructured.NestedSlice(before.Object, "metadata", "managedFields")
			if err != nil {
				t.Fatal(err)
			}
			var spoilt []any
			for _, entry := range entries {
				if entry := entry.(map[string]any); entry["manager"] == managers.Backend {
					spoilt = append(spoilt, spoil(entry)...)
				} else {
					spoilt = append(spoilt, entry)
				}
			}
			ns.MustPatch(t, harness.Hand, harness.Backend, name, harness.Replace("/metadata/managedFields", spoilt))
			ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:2" })
			ns.AwaitSettled(t, name)
			ns.AwaitNoConflict(t, name)
			ns.AwaitCalm(t, name)
			after := ns.MustObject(t, harness.Backend, name)
			if image := harness.ValueAt(after.Object, `.spec.template.spec.containers[name="mcp"].image`); image != "example.com/mcp:2" {
				t.Errorf("the image is %v", image)
			}
			claims := func(object *unstructured.Unstructured) any {
				return harness.ClaimsOf(map[harness.Component]*unstructured.Unstructured{harness.Backend: object})
			}
			if diff := gocmp.Diff(claims(before), claims(after)); diff != "" {
				t.Errorf("what our writer owns has changed (-before +after):\n%s", diff)
			}
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}

// TestAnEditUnderAWritersNameIsAConflict edits a child under the name of its writer. The conflict names who it is, and can be taken.
func TestAnEditUnderAWritersNameIsAConflict(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const name = "imposter"
	ns := settledScene(t, name)
	before, mark := ns.MustObject(t, harness.Proxy, name), ns.Mark(t)
	ns.MustPatch(t, managers.Proxy, harness.Proxy, name, harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
	ns.AwaitConflict(t, name, `"freehold-proxy" (Update; another client under a name of Freehold's)`, proxyImage)
	ns.WatchStanding(t, name, mark)
	count := harness.CountWrites(name, ns.Writes(t, mark))
	if diff := gocmp.Diff(harness.Once("event"), count.Without("status")); diff != "" {
		t.Errorf("it should cost one event (-want +got):\n%s", diff)
	}
	ns.Edit(t, name, asksBy(v1beta1.AnnotationTake, "deployment.apps/"+name+":"+proxyImage))
	ns.AwaitNoConflict(t, name)
	awaitSame(t, ns, harness.Proxy, name, before)
}
