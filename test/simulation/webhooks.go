// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// within is for how long an API server waits for a webhook unless it is told otherwise.
const within = 10 * time.Second

// pace is how long a webhook takes to answer.
type pace struct {
	name string
	// shortest and longest are the bounds between which it takes a time by chance.
	shortest, longest time.Duration
}

// paces are those of webhooks that answer late, too late, and sometimes too late.
var paces = []pace{
	{"late", 8 * time.Second, 8 * time.Second},
	{"too late", 12 * time.Second, 12 * time.Second},
	{"late by chance", 100 * time.Millisecond, 15 * time.Second},
}

// slowWebhook is a webhook that answers late about what operators write.
type slowWebhook struct {
	pace
	// namespaces is how the names of those begin about which it is asked, and kind is that of the objects; empty for all.
	namespaces, kind string
	until            time.Time
}

// Slow has a webhook answer late about what operators write in namespaces whose names begin so, or of a kind, for so long. Empty is for all.
func (s *Simulation) Slow(namespaces, kind string, p pace, long time.Duration) {
	s.webhook = &slowWebhook{p, namespaces, kind, time.Now().Add(long)}
	s.note("a webhook is " + s.webhook.String())
}

func (w *slowWebhook) String() string {
	return fmt.Sprintf("%s about %s*/%s", w.name, w.namespaces, cmp.Or(w.kind, "*"))
}

// asks returns how long the webhook takes to answer about a request; 0 for one about which it is not asked.
func (s *Simulation) asks(r *apiserver.Request) time.Duration {
	w := s.webhook
	if w == nil || !isOurs(r) || !strings.HasPrefix(r.Namespace, w.namespaces) || w.kind != "" && w.kind != r.Kind.Kind {
		return 0
	}
	return w.shortest + time.Duration(s.random.Int64N(int64(w.longest-w.shortest)+1))
}

// endWebhook ends the webhook when its time is over.
func (s *Simulation) endWebhook() {
	if s.webhook != nil && time.Now().After(s.webhook.until) {
		s.note("the webhook is gone")
		s.webhook, s.slowed = nil, time.Now()
	}
}
