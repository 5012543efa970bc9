// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// autoscalerUser is the user in whose name HorizontalPodAutoscalers are carried out.
const autoscalerUser = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// stdioServer makes an MCPServer that can have one pod at most, and asks for it.
func stdioServer(t *testing.T, name string) *scene {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t)
	one := int32(1)
	ns.Create(t, harness.Server(name, v1beta1.TransportStdio, func(s *v1beta1.MCPServer) { s.Spec.Replicas = &one }))
	ns.AwaitSettled(t, name)
	awaitSilence(t, ns)
	return &scene{Namespace: ns, server: name, component: harness.Proxy, before: ns.MustObject(t, harness.Proxy, name)}
}

// atOne is how things stand when the number was set back.
var atOne = standings{value: becomes(int64(1)), owners: []string{"freehold-proxy-replicas Apply"}}

// awaitCapped waits until the MCPServer tells who has scaled.
func (s *scene) awaitCapped(t *testing.T, who string) {
	t.Helper()
	s.AwaitServer(t, s.server, "tells who has scaled", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
		want := fmt.Sprintf("field manager %s set .spec.replicas of %s to 3; it is set back to 1: ", who, s.object())
		if c == nil || c.Status != "True" || c.Reason != "StdioReplicasReset" || !strings.HasPrefix(c.Message, want) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// checkCaps compares the operator's writes with what it costs to set the number back so many times. Each time the operator takes
// the field from the scaler and applies 1. It reports that by one event.
func (s *scene) checkCaps(t *testing.T, since audit.Mark, times int) {
	t.Helper()
	count := harness.CountWrites(s.server, s.Writes(t, since))
	refused, others := count.Lost()[s.component], s.WritesByOthers(t, since, s.component, s.server)
	if refused > others {
		t.Errorf("%d writes were refused, with %d caps and %d writes by others", refused, times, others)
	}
	want := harness.WriteCount{"proxy": times, "proxy replicas": times, "event": 1}
	if diff := cmp.Diff(want, count.Without("status")); diff != "" {
		t.Errorf("what was written is not what should have been (-want +got):\n%s", diff)
	}
	if n := count["status"]; n > times*statuses {
		t.Errorf("the status was written %d times", n)
	}
}

// TestStdioIsSetBackAgainstAnAutoscaler has a HorizontalPodAutoscaler that wants three pods where there may be one. Each time that it sets
// them, which is once in 15 s, the number is set back. That is told once.
func TestStdioIsSetBackAgainstAnAutoscaler(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := stdioServer(t, "autoscaled")
	mark := s.Mark(t)
	autoscales(3)(t, s)
	const pushes = 2
	ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	_, _, err := s.Audit.WaitFor(ctx, mark, func(events []*audit.Event) bool { return len(events) >= pushes },
		audit.Writes(), audit.Succeeded(), audit.User(autoscalerUser), audit.Namespace(s.Name), isScale)
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, replicasPath, &atOne)
	s.awaitCapped(t, `"kube-controller-manager" with subresource "scale"`)
	s.AwaitSettled(t, s.server)
	awaitSilence(t, s.Namespace)
	s.checkCaps(t, mark, pushes)
	s.checkEvents(t, []string{"StdioReplicasReset"})
	s.AwaitNoConflict(t, s.server)
}

func isScale(e *audit.Event) bool { return e.Resource == "deployments" && e.Subresource == "scale" }

// TestAHastyScalerIsAnsweredAfterWaitsThatDouble has a scaler that sets the number again whenever it was set back. It is set back at once,
// and then after waits that double.
func TestAHastyScalerIsAnsweredAfterWaitsThatDouble(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := stdioServer(t, "hasty")
	mark := s.Mark(t)
	var pushed []time.Time
	const times = 4
	harness.Eventually(t, "the number was set back so many times", func(ctx context.Context) error {
		object, err := s.Object(ctx, s.component, s.server)
		if err != nil {
			return err
		}
		if harness.ValueAt(object.Object, replicasPath) == int64(1) {
			if len(pushed) == times {
				return nil
			}
			s.ScaleProxy(t, s.server, 3)
			pushed = append(pushed, time.Now())
		}
		return errors.New("not yet")
	})
	s.await(t, replicasPath, &atOne)
	s.awaitCapped(t, `"kubectl" with subresource "scale"`)
	s.AwaitSettled(t, s.server)
	awaitSilence(t, s.Namespace)

	var capped []time.Time
	for _, e := range s.Writes(t, mark) {
		if e.Succeeded() && e.FieldManager == managers.ProxyReplicas {
			capped = append(capped, e.Received)
		}
	}
	if len(capped) != times {
		t.Fatalf("it was set back %d times", len(capped))
	}
	for i, least := 1, time.Second; i < times; i, least = i+1, 2*least {
		// The wait begins when the answer is there, so what lies between two requests is longer.
		if wait := capped[i].Sub(capped[i-1]); wait < least {
			t.Errorf("between the times %d and %d there are %v, there should be %v", i, i+1, wait, least)
		}
	}
	s.checkCaps(t, mark, times)
	s.checkEvents(t, []string{"StdioReplicasReset"})
}
