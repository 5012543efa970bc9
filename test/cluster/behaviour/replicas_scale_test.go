// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// scaleVerbs are the ways in which a client writes a number through the subresource scale.
var scaleVerbs = map[string]func(ctx context.Context, ns *harness.Namespace, component harness.Component, server string, number int64) error{
	"update": func(ctx context.Context, ns *harness.Namespace, component harness.Component, server string, number int64) error {
		scale, err := ns.Objects(component).Get(ctx, server, metav1.GetOptions{}, "scale")
		if err != nil {
			return err
		}
		scale.SetResourceVersion("") // The control plane writes to the status meanwhile.
		if err := unstructured.SetNestedField(scale.Object, number, "spec", "replicas"); err != nil {
			return err
		}
		_, err = ns.Objects(component).Update(ctx, scale, metav1.UpdateOptions{FieldManager: scaler}, "scale")
		return err
	},
	// There is no number to replace where it is 0.
	"json":  scaleByPatch(types.JSONPatchType, `[{"op":"add","path":"/spec/replicas","value":%d}]`),
	"merge": scaleByPatch(types.MergePatchType, `{"spec":{"replicas":%d}}`),
}

func scaleByPatch(kind types.PatchType, format string) func(context.Context, *harness.Namespace, harness.Component, string, int64) error {
	return func(ctx context.Context, ns *harness.Namespace, component harness.Component, server string, number int64) error {
		body := fmt.Appendf(nil, format, number)
		_, err := ns.Objects(component).Patch(ctx, server, kind, body, metav1.PatchOptions{FieldManager: scaler}, "scale")
		return err
	}
}

// recordChanges are what another client does to the annotation that records the number, just before it writes 0.
var recordChanges = map[string][]harness.Operation{
	"recorded":   nil,
	"unrecorded": {harness.Remove(recordPath)},
	"forged":     {harness.Replace(recordPath, "0")},
}

const recordPath = "/metadata/annotations/freehold.dev~1replicas-written"

// scaledServer is an MCPServer that asks for one pod of a tier, which another client scales.
type scaledServer struct {
	replicasTier
	transport v1beta1.Transport
	verb      string
	record    []harness.Operation
}

// forged reports whether the record is changed, and not removed.
func (s *scaledServer) forged() bool { return len(s.record) > 0 && s.record[0].Value != nil }

// TestWritesThroughScale has another client set numbers through the subresource scale in each way that there is. The number that the
// MCPServer asks for changes nothing. Any other one stays, as a conflict that costs no request; 0 leaves no trace of the client, so the
// other side is an unknown one, also if a client removes the record of the number. If a client changes the record, the conflict names that
// client. With transport stdio, a number above one is reset, and the MCPServer names the client.
func TestWritesThroughScale(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	process := ns.Operate(t)
	servers := map[string]*scaledServer{}
	for tierName, tier := range replicasTiers {
		for _, transport := range []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio} {
			for verb := range scaleVerbs {
				for recordName, record := range recordChanges {
					if recordName == "forged" && verb != "merge" {
						continue
					}
					name := fmt.Sprintf("%s-%s-%s-%s", tierName, transport, verb, recordName)
					servers[name] = &scaledServer{tier, transport, verb, record}
					ns.Create(t, harness.Server(name, transport, tier.asks(new(int32(1))), harness.SharedSessions))
				}
			}
		}
	}
	scale := func(number int64, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := scaleVerbs[servers[name].verb](t.Context(), ns, servers[name].component, name, number); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := slices.Sorted(maps.Keys(servers))
	capped := func(name string) bool { return servers[name].transport == v1beta1.TransportStdio }
	for _, name := range all {
		ns.AwaitSettled(t, name)
	}
	ns.AwaitOperatorRest(t)

	mark := ns.Mark(t)
	scale(1, all...)
	ns.Quiet(t, mark, harness.Calm)
	for _, name := range all {
		ns.AwaitReplicas(t, servers[name].component, name, 1, servers[name].owner)
	}

	mark = ns.Mark(t)
	scale(5, all...)
	client := fmt.Sprintf("%q with subresource \"scale\"", scaler)
	for _, name := range all {
		s := servers[name]
		if capped(name) {
			ns.AwaitReplicas(t, s.component, name, 1, s.owner)
			awaitCondition(t, ns, name, v1beta1.ConditionStdioReplicaCapped, metav1.ConditionTrue, "StdioReplicasReset", client)
			continue
		}
		ns.AwaitConflict(t, name, client+" owns .spec.replicas of "+s.kind+"/"+name)
	}
	scaledUp := slices.DeleteFunc(slices.Clone(all), capped)
	expectStanding(t, ns, servers, scaledUp, 5, scaler)
	expectNotUndone(t, ns, servers, scaledUp, mark)
	scale(1, scaledUp...)
	for _, name := range scaledUp {
		ns.AwaitNoConflict(t, name)
		ns.AwaitReplicas(t, servers[name].component, name, 1, servers[name].owner, scaler)
	}
	for _, name := range all {
		ns.AwaitSettled(t, name)
	}
	ns.AwaitOperatorRest(t)

	// The operator sees the change of the record and that of the number together.
	resume := whileFrozen(t, ns, process)
	mark = ns.Mark(t)
	for _, name := range all {
		if record := servers[name].record; record != nil {
			ns.MustPatch(t, harness.Hand, servers[name].component, name, record...)
		}
	}
	scale(0, all...)
	resume()
	decided := func() {
		t.Helper()
		ns.AwaitOperatorRest(t)
		expectNotUndone(t, ns, servers, all, mark)
		for _, name := range all {
			if servers[name].forged() {
				ns.AwaitConflict(t, name, fmt.Sprintf("%q owns .metadata.annotations.%s of %s/%s",
					harness.Hand, v1beta1.AnnotationReplicasWritten, servers[name].kind, name))
				continue
			}
			ns.AwaitConflict(t, name, "an unknown client has set .spec.replicas of "+servers[name].kind+"/"+name)
		}
		expectStanding(t, ns, servers, all, 0)
		expectNotUndone(t, ns, servers, all, mark)
	}
	decided()

	// The record is removed later, and something else is edited.
	for _, name := range all {
		if servers[name].record == nil {
			ns.MustPatch(t, harness.Hand, servers[name].component, name, harness.Remove(recordPath))
		}
		ns.Edit(t, name, image)
	}
	decided()

	for _, name := range all {
		ns.Annotate(t, name, v1beta1.AnnotationTake, servers[name].kind+"/"+name+":.spec.replicas,"+harness.Hand)
	}
	for _, name := range all {
		ns.AwaitReplicas(t, servers[name].component, name, 1, servers[name].owner)
		ns.AwaitNoConflict(t, name)
		object := ns.MustObject(t, servers[name].component, name)
		if written := object.GetAnnotations()[v1beta1.AnnotationReplicasWritten]; written != "1" {
			t.Errorf("%s: the record is %q after it was taken", name, written)
		}
	}
}

// expectStanding waits until the operator is at rest, and fails the test unless it then sends nothing and each number is as it was set.
func expectStanding(t *testing.T, ns *harness.Namespace, servers map[string]*scaledServer, names []string, number int64, owners ...string) {
	t.Helper()
	for _, name := range names {
		ns.AwaitWorkloads(t, name)
	}
	ns.AwaitOperatorRest(t)
	ns.Quiet(t, ns.Mark(t), harness.Standing)
	for _, name := range names {
		ns.AwaitReplicas(t, servers[name].component, name, number, owners...)
	}
}

// expectNotUndone fails the test if the operator has written the number of one of these MCPServers since a mark. A write that the API
// server refuses does not count: the operator restores a record before it sees the number, and comes too late.
func expectNotUndone(t *testing.T, ns *harness.Namespace, servers map[string]*scaledServer, names []string, since audit.Mark) {
	t.Helper()
	for _, e := range ns.Writes(t, since) {
		if slices.Contains(names, e.Name) && e.FieldManager == servers[e.Name].owner && e.Succeeded() {
			t.Errorf("the number was written: %v", e)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}
