// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestUpgrade goes from the last release to this one, back, and forth again, by the commands of docs/upgrade.md. The operator's
// Deployment rolls out meanwhile, so replicas of both releases run, of which one works. It is at rest before and after each step.
func TestUpgrade(t *testing.T) {
	release := lastRelease(t)
	s := newScene(t, release.Root)
	s.earlier = release
	replicas := []*operator.Process{s.runEarlier(t), s.runEarlier(t)}
	s.populate(t)
	s.AwaitRest(t)

	commands := map[string][]documents.Command{}
	for _, command := range documents.Of(t) {
		commands[command.Section] = append(commands[command.Section], command)
	}
	step := func(name, section string, next func(*testing.T) *operator.Process) {
		t.Helper()
		before, mark := s.look(t), s.Mark(t)
		for _, command := range commands[section] {
			if strings.Contains(command.Text, " rollout status ") {
				replicas = s.replace(t, replicas, next)
			}
			if out := s.types(t, command); out == "" {
				t.Errorf("%v shows nothing", command)
			}
		}
		s.rest(t, replicas...)
		s.check(t, name, before, mark)
	}
	for _, command := range commands["See what will be written"] {
		command.Text += "; test $? = 1" // There are differences.
		var shown []string
		for line := range strings.Lines(s.types(t, command)) {
			if object, ok := strings.CutPrefix(line, "--- "); ok {
				shown = append(shown, digest.ReplaceAllString(strings.TrimSuffix(object[strings.LastIndex(object, "/")+1:], " as it is\n"), ""))
			}
		}
		slices.Sort(shown)
		shown = slices.Compact(shown) // Both workloads have the name of the MCPServer.
		want := []string{
			"mcp-" + pair, "mcp-" + pair + "-headless", "mcp-" + pair + "-proxy", pair, pair + "-authz-inline", pair + "-proxy-runner",
			pair + "-runconfig", pair + "-sa",
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%v shows other objects than the table (-want +got):\n%s", command, diff)
		}
	}
	step(upgrade, "Upgrade", s.runPresent)
	step(rollback, "Roll back", s.runEarlier)
	step(upgrade, "Upgrade", s.runPresent)
	if !t.Failed() {
		s.handOver(t, replicas)
	}
}

// replace is the rollout of the operator's Deployment: one pod more than there are to be, and each that ends is replaced.
func (s *scene) replace(t *testing.T, replicas []*operator.Process, next func(*testing.T) *operator.Process) []*operator.Process {
	t.Helper()
	var now []*operator.Process
	for _, before := range replicas {
		now = append(now, next(t))
		harness.Stop(t, before)
	}
	return now
}

// handOver edits MCPServers while the lease passes from one release to the other: an operator is told to end when half of them
// are edited, and the other one, which waits, does the rest. No one writes after another has begun.
func (s *scene) handOver(t *testing.T, replicas []*operator.Process) {
	t.Helper()
	harness.Stop(t, replicas[1])
	leader, pods := s.leader(t, replicas[:1]), s.look(t).pods()
	for round, next := range []func(*testing.T) *operator.Process{s.runEarlier, s.runPresent} {
		standby := next(t)
		mark := s.Mark(t)
		s.edit(t, round, func() {
			s.AwaitWrites(t, mark, "the first writes for the edits", func(events []*audit.Event) bool { return len(events) > 2 })
			harness.Stop(t, leader)
		})
		s.awaitAllReady(t)
		s.rest(t, standby)
		s.checkOrder(t, round, mark)
		s.checkEdits(t, round)
		leader = standby
	}
	if after := s.look(t).pods(); len(after) != len(pods) {
		t.Errorf("there are %d pods, there were %d", len(after), len(pods))
	} else {
		for name, uid := range pods {
			if after[name] != uid {
				t.Errorf("pod %s was replaced", name)
			}
		}
	}
	s.CheckOwnership(t, pair)
	s.CheckOwnership(t, lone)
}
