// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// badInput is one way to break an MCPServer that works.
type badInput struct {
	name   string
	spoil  harness.Change
	expect harness.Expectation
	// refused is the child that the API server refuses. Empty where the operator sees for itself that the spec
	// cannot work, and asks for nothing.
	refused harness.Component
	// held tells that only the proxy waits, for what the spec refers to.
	held bool
}

// mostAttempts is how often a refused write is made while these tests look on: the first wait is 5 s, and each further one
// twice as long.
const mostAttempts = 7

// checkAttempts fails the test unless the writes of children were those of the one that is refused: it is made, and after
// waits that grow it is made again.
func (c badInput) checkAttempts(t *testing.T, name string, count harness.WriteCount) {
	t.Helper()
	item := string(c.refused) + " (422)"
	if others := count.Without(item); len(others) > 0 {
		t.Errorf("writes for %s: %v", name, others)
	}
	if n := count[item]; c.refused != "" && (n < 1 || n > mostAttempts) {
		t.Errorf("%s was tried %d times for %s", c.refused, n, name)
	}
}

// isInvalid tells of a write whether the API server's validation has refused it.
func isInvalid(e *audit.Event) bool { return e.Code == http.StatusUnprocessableEntity }

// spared are the children that an MCPServer gets although it is bad from its start.
func (c badInput) spared() []harness.Component {
	if c.refused == "" && !c.held {
		return nil
	}
	return slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool {
		// The Deployment waits for the StatefulSet.
		return component == c.refused || component == harness.Proxy || c.held && component == harness.RunConfig
	})
}

// born is the name of the MCPServer that is bad from its start.
func (c badInput) born() string { return c.name + "-new" }

// repair gives an MCPServer the spec of a new one, with another image, so that both tiers are restarted.
func repair(server *v1beta1.MCPServer) {
	server.Spec = harness.HTTPServer(server.Name).Spec
	server.Spec.Image = harness.OtherImage
	server.Annotations = nil
}

func isFailed(server *v1beta1.MCPServer) error {
	if server.Status.Phase != v1beta1.PhaseFailed {
		return fmt.Errorf("the phase is %s: %s", server.Status.Phase, server.Status.Message)
	}
	return nil
}

// TestBadInput breaks MCPServers, such as have worked and new ones, restarts the operator, and repairs them.
func TestBadInput(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	first := s.Operate(t)
	cases := slices.Concat(badTemplates, badFields, missingReferences, refusedByServer)

	for _, c := range cases {
		s.Create(t, harness.HTTPServer(c.name))
	}
	for _, c := range cases {
		s.AwaitStatus(t, c.name, harness.Fine...)
		s.AwaitSettled(t, c.name)
	}
	s.AwaitRest(t)
	good := s.ChildVersions(t)

	broken := s.Mark(t)
	for _, c := range cases {
		s.Edit(t, c.name, c.spoil)
		s.Create(t, harness.HTTPServer(c.born(), c.spoil))
	}
	for _, c := range cases {
		t.Run(c.name+"/is shown", func(t *testing.T) {
			for _, name := range []string{c.name, c.born()} {
				s.AwaitStatus(t, name, c.expect)
				s.AwaitServer(t, name, "is Failed, once what it refers to has been waited for", isFailed)
			}
		})
	}
	expected := map[string]harness.Expectation{}
	for _, c := range cases {
		expected[c.name], expected[c.born()] = c.expect, c.expect
	}
	s.AwaitRest(t, audit.Not(isInvalid))
	s.AwaitOneWarningEach(t, expected)
	s.Quiet(t, s.Mark(t), harness.Calm, audit.Not(isInvalid))

	bad, tried := s.ChildVersions(t), s.Writes(t, broken)
	for _, c := range cases {
		t.Run(c.name+"/leaves the last good state", func(t *testing.T) {
			if changed := good[c.name].Changed(bad[c.name]); len(changed) > 0 {
				t.Errorf("these children changed: %v", changed)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.spared())), bad[c.born()].Components()); diff != "" {
				t.Errorf("what was bad from its start has other children (-want +got):\n%s", diff)
			}
			c.checkAttempts(t, c.name, harness.CountAttempts(c.name, tried))
		})
	}

	restarted := s.Mark(t)
	s.ReplaceOperator(t, first)
	s.AwaitRest(t, audit.Not(isInvalid))
	tried = s.Writes(t, restarted)
	for _, c := range cases {
		t.Run(c.name+"/costs nothing after a restart", func(t *testing.T) {
			for _, name := range []string{c.name, c.born()} {
				// A new process cannot know what the API server refused the old one, and asks at once.
				c.checkAttempts(t, name, harness.CountWrites(name, tried))
			}
		})
	}
	s.AwaitOneWarningEach(t, expected)

	// The repair comes with another edit, of which one can see that it is carried out.
	for _, c := range cases {
		for _, name := range []string{c.name, c.born()} {
			s.Edit(t, name, func(server *v1beta1.MCPServer) {
				server.Spec = harness.HTTPServer(name).Spec
				server.Spec.SessionAffinity = string(corev1.ServiceAffinityNone)
			})
		}
	}
	for _, c := range cases {
		t.Run(c.name+"/recovers", func(t *testing.T) {
			for _, name := range []string{c.name, c.born()} {
				s.AwaitStatus(t, name, harness.Fine...)
				service := s.MustObject(t, harness.ProxyService, name)
				if got := harness.ValueAt(service.Object, ".spec.sessionAffinity"); got != "None" {
					t.Errorf("the Service of %s has the session affinity %s", name, got)
				}
			}
		})
	}
	whole := s.ChildVersions(t)
	for _, c := range cases {
		if diff := cmp.Diff(slices.Sorted(slices.Values(harness.HTTPComponents())), whole[c.born()].Components()); diff != "" {
			t.Errorf("%s has other children (-want +got):\n%s", c.born(), diff)
		}
	}
}

// TestRefusedWorkload has a StatefulSet that the API server refuses, and numbers of pods for both workloads. A number
// alone does not make a workload, so nothing is asked for it, and the one thing that is wrong is told.
func TestRefusedWorkload(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	began := s.Mark(t)
	s.Create(t, harness.HTTPServer("counted", harness.Replicas(2, 2), harness.PodTemplate(`{"spec":{"dnsPolicy":"Carrier Pigeon"}}`)))
	server := s.AwaitStatus(t, "counted", refused("statefulset.apps", "counted", "dnsPolicy"))
	if applied := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionApplied); strings.Contains(applied.Message, "more)") {
		t.Errorf("one thing is wrong, and told is: %s", applied.Message)
	}
	s.AwaitRest(t, audit.Not(isInvalid))
	count := harness.CountAttempts("counted", s.Writes(t, began))
	if n := count["backend (422)"]; n < 1 || n > mostAttempts || count["backend replicas (422)"]+count["proxy replicas (422)"] != 0 {
		t.Errorf("attempts to write children: %v", count)
	}
	s.Edit(t, "counted", func(server *v1beta1.MCPServer) { server.Spec.PodTemplateSpec = nil })
	s.AwaitStatus(t, "counted", harness.Fine...)
	s.AwaitSettled(t, "counted")
}
