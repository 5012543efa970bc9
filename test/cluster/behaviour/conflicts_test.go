// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// side is what a field manager does to a component of an MCPServer. The object is that component before the dispute.
type side func(t *testing.T, ns *harness.Namespace, server string, component harness.Component, before *unstructured.Unstructured)

// dispute is a field of ours to which somebody gives another value.
type dispute struct {
	component harness.Component
	// writer is whose field it is, as a WriteCount names it; the component when empty.
	writer string
	before harness.Change
	begin  side
	// named is what the condition names: the other side and the field.
	named []string
	end   side
	// counts tells that the number of pods changes, which the status tells as well.
	counts bool
}

// disputes are fields of each kind of object. Some are taken away: a part of something atomic cannot be removed but
// only changed, and neither can what the API server replaces by a default.
var disputes = map[string]dispute{
	"image": {
		component: harness.Proxy,
		begin:     byHand(harness.Replace(harness.FirstContainer+"/image", "example.com/other:1")),
		named:     []string{harness.Hand, `.spec.template.spec.containers[name="toolhive"].image`},
		end:       putBack("spec", "template"),
	},
	"variable": {
		component: harness.Backend,
		begin:     byHand(harness.Replace(harness.FirstContainer+"/env/0/value", "other")),
		named:     []string{harness.Hand, `.spec.template.spec.containers[name="mcp"].env[name="FASTMCP_PORT"].value`},
		end:       putBack("spec", "template"),
	},
	"selector": {
		component: harness.BackendService,
		begin:     byHand(harness.Add("/spec/selector/zone", "a")),
		named:     []string{harness.Hand, ".spec.selector"},
		end:       putBack("spec", "selector"),
	},
	"affinity": {
		component: harness.ProxyService,
		// The Service of the backend stays as it is.
		before: func(s *v1beta1.MCPServer) { s.Spec.Transport = v1beta1.TransportSSE },
		begin:  byHand(harness.Remove("/spec/sessionAffinity")),
		named:  []string{harness.Hand, ".spec.sessionAffinity"},
		end:    asksFor(func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "None" }),
	},
	"rules": {
		component: harness.ProxyRole,
		begin:     byHand(harness.Remove("/rules/0")),
		named:     []string{harness.Hand, ".rules"},
		end:       putBack("rules"),
	},
	"runconfig": {
		component: harness.RunConfig,
		begin:     byHand(harness.Replace("/metadata/labels/toolhive.stacklok.io~1component", "theirs")),
		named:     []string{harness.Hand, ".metadata.labels.toolhive.stacklok.io/component"},
		end:       putBack("metadata", "labels"),
	},
	"scale": {
		component: harness.Proxy, writer: "proxy replicas", counts: true,
		before: func(s *v1beta1.MCPServer) {
			harness.Replicas(1, 1)(s)
			s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
		},
		begin: scaleTo(2),
		named: []string{`"kubectl" with subresource "scale"`, ".spec.replicas"},
		end:   asksFor(harness.Replicas(2, 1)),
	},
	"label": {
		component: harness.Proxy,
		begin:     byTeam(map[string]any{"metadata": map[string]any{"labels": map[string]any{"toolhive": "theirs"}}}),
		named:     []string{harness.Team, ".metadata.labels.toolhive"},
		end:       byTeam(nil),
	},
}

// byHand changes something by hand.
func byHand(operations ...harness.Operation) side {
	return func(t *testing.T, ns *harness.Namespace, server string, component harness.Component, _ *unstructured.Unstructured) {
		t.Helper()
		ns.MustPatch(t, harness.Hand, component, server, operations...)
	}
}

// putBack gives a field, by hand, the value that it had before.
func putBack(path ...string) side {
	return func(t *testing.T, ns *harness.Namespace, server string, component harness.Component, before *unstructured.Unstructured) {
		t.Helper()
		value, found, err := unstructured.NestedFieldNoCopy(before.Object, path...)
		if err != nil || !found {
			t.Fatalf("there was no %v: %v", path, err)
		}
		ns.MustPatch(t, harness.Hand, component, server, harness.Replace("/"+strings.Join(path, "/"), value))
	}
}

// byTeam applies fields as a manager that takes them by force; without fields it gives up all that it has.
func byTeam(fields map[string]any) side {
	return func(t *testing.T, ns *harness.Namespace, server string, component harness.Component, _ *unstructured.Unstructured) {
		t.Helper()
		ns.MustApply(t, harness.Team, component, server, true, fields)
	}
}

// scaleTo does what kubectl scale does.
func scaleTo(replicas int32) side {
	return func(t *testing.T, ns *harness.Namespace, server string, _ harness.Component, _ *unstructured.Unstructured) {
		t.Helper()
		ns.ScaleProxy(t, server, replicas)
	}
}

// asksFor makes the MCPServer ask for something else.
func asksFor(change harness.Change) side {
	return func(t *testing.T, ns *harness.Namespace, server string, _ harness.Component, _ *unstructured.Unstructured) {
		t.Helper()
		ns.Edit(t, server, change)
	}
}

// TestConflict changes fields by hand. That is no drift to be undone, but a disagreement: it is told, once, with both
// sides; nothing is tried again as long as it stands; and it ends when the other side gives the field up, or when both
// want the same.
func TestConflict(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for name, d := range disputes {
		server := harness.Server(name, v1beta1.TransportStreamableHTTP)
		if d.before != nil {
			d.before(server)
		}
		ns.Create(t, server)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			item := cmp.Or(d.writer, string(d.component))
			statuses := 1
			if d.counts {
				statuses = 2
			}

			before, mark := ns.MustObject(t, d.component, name), ns.Mark(t)
			d.begin(t, ns, name, d.component, before)
			ns.AwaitConflict(t, name, d.named...)
			ns.WatchStanding(t, name, mark)
			count := harness.CountWrites(name, ns.Writes(t, mark))
			if diff := gocmp.Diff(harness.FormOf(d.component).Conflict(d.named[1]), count.Without("status")); diff != "" {
				t.Errorf("a conflict that stands should cost one event (-want +got):\n%s", diff)
			}
			if n := count["status"]; n > statuses {
				t.Errorf("the status was written %d times", n)
			}
			ns.CheckOneConflictEvent(t, name)

			mark = ns.Mark(t)
			d.end(t, ns, name, d.component, before)
			ns.AwaitNoConflict(t, name)
			ns.AwaitSettled(t, name)
			if n := ns.CheckWrites(t, name, mark, harness.Once(item)); n > harness.MostStatuses {
				t.Errorf("the status was written %d times", n)
			}
		})
	}
}

// TestConflictHoldsOneWriter edits an MCPServer one of whose objects is disputed. Everything else follows the edit,
// and that object as soon as it can.
func TestConflictHoldsOneWriter(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "held"
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
	before := ns.MustObject(t, harness.Proxy, name)
	ns.MustPatch(t, harness.Hand, harness.Proxy, name, harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
	ns.AwaitConflict(t, name, harness.Hand)
	ns.WatchStanding(t, name, ns.Mark(t))

	mark := ns.Mark(t)
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:2" })
	ns.AwaitConflict(t, name, harness.Hand)
	ns.WatchStanding(t, name, mark)
	count := harness.CountWrites(name, ns.Writes(t, mark))
	if diff := gocmp.Diff(harness.Once("runconfig", "backend"), count.Without("status")); diff != "" {
		t.Errorf("the edit should be followed but by the proxy (-want +got):\n%s", diff)
	}

	mark = ns.Mark(t)
	putBack("spec", "template", "spec", "containers")(t, ns, name, harness.Proxy, before)
	ns.AwaitNoConflict(t, name)
	ns.AwaitSettled(t, name)
	ns.CheckWrites(t, name, mark, harness.Once("proxy"))
	args, _, err := unstructured.NestedSlice(ns.MustObject(t, harness.Proxy, name).Object, "spec", "template", "spec", "containers")
	if err != nil || len(args) != 1 || !gocmp.Equal(args[0].(map[string]any)["args"], []any{"run", "example.com/mcp:2"}) {
		t.Errorf("the proxy has not followed: %v, %v", args, err)
	}
}
