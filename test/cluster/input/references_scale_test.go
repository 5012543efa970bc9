// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// scaleVariable is the environment variable with the number of MCPServers that share one issuer.
	scaleVariable = "FREEHOLD_REFERRERS"
	// scaleDefault is that number when the variable is not set.
	scaleDefault = 60
	// atOnce is how many of a namespace are rolled out at a time for a change of what they refer to.
	atOnce = 10
	// timeEach is how long an MCPServer may take in a crowd. It limits the wait and is no promise.
	timeEach = 3 * time.Second
)

// TestScale edits an issuer that many MCPServers share. Each gets one RunConfig and one write of its Deployment, and no other
// child any; of the issuer the status is written, once. Nothing is read, and few proxies are replaced at a time.
func TestScale(t *testing.T) {
	harness.Long(t)
	count := harness.Count(t, scaleVariable, scaleDefault)
	timeout := time.Duration(count) * timeEach
	s := newScene(t)
	p := s.Operate(t, ours)
	s.publish(t, issuer(address(1)))
	fleet := make([]*v1beta1.MCPServer, 0, count)
	for i := range count {
		fleet = append(fleet, harness.HTTPServer(fmt.Sprintf("referrer-%04d", i), authenticated))
	}
	s.Launch(t, fleet)
	s.AwaitAllSettled(t, count, timeout)
	s.AwaitLook(t, p)
	s.AwaitOperatorRest(t)

	history, mark := s.Record(t, appsv1.SchemeGroupVersion.WithResource("deployments")), s.Mark(t)
	began := time.Now()
	s.revise(t, func(config *v1beta1.MCPOIDCConfig) { config.Spec.Inline.Issuer = address(2) })
	harness.EventuallyWithin(t, timeout, "every proxy has been replaced", func(context.Context) error {
		waiting := 0
		latest := map[string]int64{}
		for _, v := range history.Complete(t) {
			latest[v.GetName()] = v.GetGeneration()
		}
		for _, generation := range latest {
			if generation < 2 {
				waiting++
			}
		}
		if waiting > 0 {
			return fmt.Errorf("%d have not", waiting)
		}
		return nil
	})
	s.AwaitAllSettled(t, count, timeout)
	s.AwaitOperatorRest(t)
	t.Logf("%d MCPServers: rolled out after %v", count, harness.Since(began))

	writes, statuses := s.Writes(t, mark), 0
	objects, err := s.AllObjects(t.Context()) // at once: there are many
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range fleet {
		made := harness.CountWrites(server.Name, writes)
		made.Lost()
		statuses += made["status"]
		if got, want := made.Without("status", "event"), harness.Once("runconfig", "proxy"); !maps.Equal(got, want) {
			t.Errorf("writes for %s: %v, want %v", server.Name, got, want)
		}
		if document := fmt.Sprint(objects[server.Name][harness.RunConfig]); !strings.Contains(document, address(2)) {
			t.Errorf("%s reads %s", server.Name, document)
		}
	}
	if ofIssuer := slices.DeleteFunc(slices.Clone(writes), func(e *audit.Event) bool {
		return e.Group != toolhive.GroupName || e.Resource == "mcpservers"
	}); len(ofIssuer) != 1 || ofIssuer[0].Subresource != "status" {
		t.Errorf("writes of what is referred to: %v, want one of the issuer's status", ofIssuer)
	}
	if statuses > harness.MostStatuses*count {
		t.Errorf("%d writes of statuses, want at most %d for each MCPServer", statuses, harness.MostStatuses)
	}
	s.expectNoReads(t, mark)
	most := mostRolling(t, history.Complete(t), 2)
	if most > atOnce || most == 0 {
		t.Errorf("%d proxies were being replaced at a time, want 1 to %d", most, atOnce)
	}
	env.Numbers.Add("an edit of a configuration that MCPServers share: MCPServers, each with one RunConfig and one Deployment written", count)
	t.Logf("%d MCPServers: %d writes of children, %d of statuses, at most %d at a time", count, 2*count, statuses, most)
	s.Quiet(t, s.Mark(t), harness.Calm)
}

// TestRestartWhileRolling starts an operator anew while proxies are being replaced for an edit of their issuer. It begins no
// further ones before these are over.
func TestRestartWhileRolling(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const count, few = 6, 2
	s := newScene(t)
	flag := fmt.Sprintf("--config-rollouts-at-once=%d", few)
	running, history := s.Operate(t, ours, flag), s.record(t)
	s.publish(t, issuer(address(1)))
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("rolled-%d", i))
		s.Create(t, harness.HTTPServer(names[i], authenticated))
	}
	s.AwaitAllSettled(t, count, harness.Timeout)
	s.AwaitOperatorRest(t)
	thaw := s.freezePods(t, len(s.pods(t)))
	s.revise(t, func(config *v1beta1.MCPOIDCConfig) { config.Spec.Inline.Issuer = address(2) })
	begun := func() (begun []string) {
		for _, name := range names {
			if s.deployment(t, name).Generation > 1 {
				begun = append(begun, name)
			}
		}
		return begun
	}
	harness.Eventually(t, "the rollouts begin", func(context.Context) error {
		if got := begun(); len(got) != few {
			return fmt.Errorf("%v have begun", got)
		}
		return nil
	})
	s.AwaitOperatorRest(t)
	first := begun()
	running = s.ReplaceOperator(t, running, ours, flag)
	s.AwaitOperatorRest(t)
	if got := begun(); !slices.Equal(got, first) {
		t.Errorf("after a restart %v are being replaced, and %v were before", got, first)
	}
	s.ReplaceOperator(t, running, ours, flag)
	thaw()
	for _, name := range names {
		s.awaitDocument(t, name, address(2))
		if got := s.deployment(t, name).Generation; got != 2 {
			t.Errorf("%s has gone to generation %d", name, got)
		}
	}
	history.templates(t)
	if most := mostRolling(t, history.deployments.Complete(t), 2); most != few {
		t.Errorf("%d proxies were being replaced at a time, want %d", most, few)
	}
}

// expectNoReads fails the test if operators have read something since the mark. Streams of events that go on are no reads, and kinds that
// are not served are listed from time to time.
func (s scene) expectNoReads(t *testing.T, since audit.Mark) {
	t.Helper()
	events, _, err := s.Audit.Since(since, s.ByOperator(), audit.Not(audit.Writes()), audit.Not(audit.Verb("watch")), audit.Not(harness.ListsInVain))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		t.Errorf("a read: %v", e)
	}
}

// mostRolling is how many Deployments were being rolled out at a time at most: of a template that its controller has not seen, or
// whose pods are not all there and ready, or with pods of another one. Earlier generations than the given one do not count.
func mostRolling(t *testing.T, versions []harness.Version, from int64) (most int) {
	t.Helper()
	rolling := map[string]bool{}
	for _, v := range versions {
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object, &d); err != nil {
			t.Fatal(err)
		}
		s := d.Status
		if d.Generation >= from && (s.ObservedGeneration < d.Generation || s.Replicas > s.UpdatedReplicas || s.ReadyReplicas == 0) {
			rolling[d.Name] = true
		} else {
			delete(rolling, d.Name)
		}
		most = max(most, len(rolling))
	}
	return most
}
