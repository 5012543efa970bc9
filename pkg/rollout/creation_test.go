// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/freehold-dev/freehold/pkg/rollout"
)

// TestAPodThatIsNotCreatedIsExplained follows a StatefulSet that lacks a pod, with what its events say meanwhile.
func TestAPodThatIsNotCreatedIsExplained(t *testing.T) {
	creating := rollout.State{Phase: rollout.Progressing, Reason: rollout.Creating}
	inTheWay := creating
	inTheWay.Pod = "web-0"
	const quota = "exceeded quota: pods"
	type moment struct {
		after    time.Duration
		state    rollout.State
		refusal  string // what the events say; "" for nothing
		unread   bool   // they cannot be read
		reported bool   // an earlier process has reported it
		want     string
		wake     time.Duration
		looks    int // how often the events are read
	}
	for name, moments := range map[string][]moment{
		"refused": {
			{state: creating, want: "Progressing: CreatingPods", wake: 5 * time.Second},
			{after: 4 * time.Second, state: creating, refusal: quota, want: "Progressing: CreatingPods", wake: time.Second},
			{after: 5 * time.Second, state: creating, refusal: quota, want: "Stuck: FailedCreate: " + quota, wake: 10 * time.Second, looks: 1},
			{after: 6 * time.Second, state: creating, want: "Stuck: FailedCreate: " + quota, wake: 9 * time.Second},
			{after: 15 * time.Second, state: creating, unread: true, want: "Stuck: FailedCreate: " + quota, wake: 20 * time.Second, looks: 1},
			{after: 35 * time.Second, state: creating, refusal: "no", want: "Stuck: FailedCreate: no", wake: 40 * time.Second, looks: 1},
			{after: 36 * time.Second, state: rollout.State{Phase: rollout.Complete, Ready: true}, want: "Complete"},
			{after: 37 * time.Second, state: creating, want: "Progressing: CreatingPods", wake: 5 * time.Second},
		},
		"nothing says why": {
			{state: creating, want: "Progressing: CreatingPods", wake: 5 * time.Second},
			{after: 5 * time.Minute, state: creating, want: "Progressing: CreatingPods", wake: 10 * time.Second, looks: 1},
			{
				after: rollout.ReadyDeadline, state: creating, looks: 1, wake: 20 * time.Second,
				want: "Stuck: PodsMissing: its controller creates no pod; the events of the StatefulSet say why",
			},
		},
		"an earlier pod is in the way": {
			{state: inTheWay, want: "Progressing: CreatingPods (pod web-0)", wake: 5 * time.Second},
			{after: 5 * time.Second, state: inTheWay, refusal: quota, want: "Progressing: CreatingPods (pod web-0)", wake: 10 * time.Second},
		},
		"reported by an earlier process": {
			{state: creating, reported: true, refusal: quota, want: "Stuck: FailedCreate: " + quota, wake: 10 * time.Second, looks: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c rollout.Creation
			for _, m := range moments {
				looks := 0
				got, wake := c.Follow(m.state, m.reported, noon.Add(m.after), func(since time.Time) (string, bool) {
					if looks++; since.After(noon) {
						t.Errorf("after %s: refusals before %s are left out", m.after, since)
					}
					return m.refusal, !m.unread
				})
				if got.String() != m.want || wake != m.wake || looks != m.looks {
					t.Errorf("after %s: %q, again in %s, %d looks; want %q, %s, %d", m.after, got, wake, looks, m.want, m.wake, m.looks)
				}
			}
		})
	}
}

// TestLooksAtRefusalsGrowRare counts how often the events are read in a day.
func TestLooksAtRefusalsGrowRare(t *testing.T) {
	var c rollout.Creation
	looks := 0
	for now := time.Duration(0); now < 24*time.Hour; {
		_, wake := c.Follow(rollout.State{Phase: rollout.Progressing, Reason: rollout.Creating}, false, noon.Add(now), func(time.Time) (string, bool) {
			looks++
			return "refused", true
		})
		if wake <= 0 {
			t.Fatalf("after %s: again in %s", now, wake)
		}
		now += wake
	}
	if looks < 200 || looks > 300 {
		t.Errorf("%d looks in a day", looks)
	}
}
