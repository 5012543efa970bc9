// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Phase is how far a rollout has come.
type Phase string

const (
	// Complete means that the pods are those that the present template asks for, and none is left of an earlier one. They
	// need not all be ready.
	Complete Phase = "Complete"
	// Progressing means that it goes on by itself.
	Progressing Phase = "Progressing"
	// Waiting means that it goes on after an action: the user, or another client, deletes a pod that is updated OnDelete,
	// lowers the partition, or resumes a paused Deployment.
	Waiting Phase = "Waiting"
	// Stuck means that a new pod does not become ready, for a reason that waiting alone does not cure.
	Stuck Phase = "Stuck"
)

// Phases returns all phases, sorted.
func Phases() []Phase { return []Phase{Complete, Progressing, Stuck, Waiting} }

// State is a rollout.
type State struct {
	Phase Phase
	// Reason is a word for why it is not complete; empty when it is. Of a rollout that waits or is stuck it is the reason
	// of a condition.
	Reason string
	// Pod that it is stuck at, or waits for; empty where it is not about one.
	Pod string
	// Detail is the message of the kubelet, the scheduler or a controller about it.
	Detail string
	// Since is when that began; zero when it is unknown.
	Since time.Time
	// Ready reports whether at least one pod of the present template is ready.
	Ready bool
}

// Serves reports whether what the present template asks for serves, and nothing else does.
func (s State) Serves() bool { return s.Phase == Complete && s.Ready }

// Overdue returns the state of a rollout that has been Creating for too long. No object records since when, and the caller's memory may
// be younger, so it has no Since.
func (s State) Overdue() State {
	s.Phase, s.Reason, s.Detail = Stuck, v1beta1.ReasonPodsMissing, "its controller creates no pod; the events of the StatefulSet say why"
	if s.Pod != "" {
		s.Detail = "it was deleted and does not go, and none can take its place"
	}
	return s
}

// String returns the state in a few words that stay the same while nothing changes.
func (s State) String() string {
	text := string(s.Phase)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	if s.Pod != "" {
		text += fmt.Sprintf(" (pod %s)", s.Pod)
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}
