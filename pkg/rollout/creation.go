// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// looks is when to look why a pod is not created: after 5 s, since most are created at once, and again after 10 s, 20 s and so on, up to
// 5 min.
var looks = wait.Backoff{Duration: 5 * time.Second, Factor: 2, Steps: 7, Cap: 5 * time.Minute}

// earlier is how much earlier than it was seen a refusal may have come: events have whole seconds, and clocks differ.
const earlier = time.Minute

// Creation is a pod that the controller of a StatefulSet is to create. No object has the time since when, and the reason why it cannot is
// in events alone, which nothing watches. The zero value is that there is none.
type Creation struct {
	since, next time.Time
	looks       wait.Backoff
	refusal     string
}

// Follow returns the state of a rollout that may be Creating, and when to look again. refusal reads the last refusal of a pod since a time:
// "" for none, and known is false if it cannot be read. reported is set where an earlier process has reported the rollout as stuck, which it
// stays.
func (c *Creation) Follow(
	state State, reported bool, now time.Time, refusal func(since time.Time) (reason string, known bool),
) (_ State, wake time.Duration) {
	if state.Phase != Progressing || state.Reason != Creating {
		*c = Creation{}
		return state, 0
	}
	if c.since.IsZero() {
		c.since, c.looks = now, looks
		c.next = now.Add(c.looks.Step())
		if reported {
			c.since, c.next = now.Add(-ReadyDeadline), now
		}
	}
	if !now.Before(c.next) {
		if state.Pod != "" { // An earlier pod is in the way, and nothing is refused.
			c.refusal = ""
		} else if found, known := refusal(c.since.Add(-earlier)); known {
			c.refusal = found
		}
		c.next = now.Add(c.looks.Step())
	}
	wake = c.next.Sub(now)
	left := c.since.Add(ReadyDeadline).Sub(now)
	switch {
	case c.refusal != "":
		return stuck(state, &trouble{reason: v1beta1.ReasonFailedCreate, detail: c.refusal}), wake
	case left > 0:
		return state, min(left, wake)
	}
	return state.Overdue(), wake
}
