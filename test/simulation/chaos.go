// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Fault is something that goes wrong in a cluster.
type Fault string

// The faults.
const (
	// FaultKill kills a process of the operator, which is started again at once.
	FaultKill Fault = "kill"
	// FaultTwin starts another process of the operator while one is at work, as after a lost lease. The earlier one is killed
	// some steps later.
	FaultTwin Fault = "twin"
	// FaultCut ends a watch; the client begins it again where it was.
	FaultCut Fault = "cut"
	// FaultExpire ends a watch, and the client has to list anew.
	FaultExpire Fault = "expire"
	// FaultBookmark tells the client of a watch the newest version, after the events that it has yet to be told.
	FaultBookmark Fault = "bookmark"
	// FaultCompact forgets earlier versions.
	FaultCompact Fault = "compact"
	// FaultDelay holds the events of one watch back for some steps.
	FaultDelay Fault = "delay"
	// FaultRefuse gives a request one of the fates, other than what a webhook stores.
	FaultRefuse Fault = "refuse"
	// FaultLose carries a request out, and its answer is lost.
	FaultLose Fault = "lose"
	// FaultPolicy puts a mutating admission policy in force, which changes what Freehold owns and is gone some steps later, or once the
	// cluster has been at rest for some minutes.
	FaultPolicy Fault = "policy"
	// FaultRemover starts a client that removes the same thing of Freehold's whenever it is back, for some minutes.
	FaultRemover Fault = "remover"
	// FaultRival starts an operator with other settings while one is at work, and kills it some steps later.
	FaultRival Fault = "rival"
	// FaultSquatter starts a client that takes the names of Freehold's children, for some minutes.
	FaultSquatter Fault = "squatter"
	// FaultSlow has a webhook answer late about what operators write, all of it or what is of one kind, for some minutes.
	FaultSlow Fault = "slow"
	// FaultClock lets time pass while there is something to do.
	FaultClock Fault = "clock"
)

// Faults are those after which pods have been replaced no more often than without.
func Faults() []Fault {
	return []Fault{FaultKill, FaultTwin, FaultCut, FaultExpire, FaultBookmark, FaultCompact, FaultDelay, FaultRefuse, FaultLose, FaultSlow, FaultClock}
}

// AllFaults are all of them.
func AllFaults() []Fault {
	return append(Faults(), FaultPolicy, FaultRemover, FaultRival, FaultSquatter)
}

// chaos is what goes wrong in a history.
type chaos struct {
	// left is how many more faults there are.
	left int
	// of says which.
	of []Fault
	// tally counts them.
	tally map[Fault]int
	// delayed are the watches that are held back, until a step.
	delayed map[*apiserver.Watch]int
	// succeeded is the process that has a successor, until a step.
	succeeded *Operator
	until     int
	// rival is that process if it has other settings than the one beside it; nil for none.
	rival *Operator
}

// Trouble lets faults happen from now on, one in so many steps, until there have been n. Watches that begin from now on end by themselves, too.
func (s *Simulation) Trouble(n int, of ...Fault) {
	s.Server.TimeOut = true
	s.chaos = &chaos{left: n, of: of, tally: map[Fault]int{}, delayed: map[*apiserver.Watch]int{}}
}

// mischief is one step in which something may go wrong. It is what the scheduler does with the choices that there are.
func (s *Simulation) mischief(all []choice) []choice {
	c := s.chaos
	if c == nil {
		return all
	}
	if c.succeeded != nil && s.Steps > c.until {
		s.note("kills " + c.succeeded.name + ", beside which another one runs")
		s.Kill(c.succeeded)
		c.rival, c.succeeded = nil, nil
		all = s.choices()
	}
	if s.policy != nil && s.policy.until > 0 && s.Steps > s.policy.until {
		s.lift()
	}
	for w, until := range c.delayed {
		if s.Steps > until {
			delete(c.delayed, w)
		}
	}
	if c.left > 0 && s.random.IntN(oneIn) == 0 {
		s.fault(c.of[s.random.IntN(len(c.of))], all)
		all = s.choices()
	}
	if len(c.delayed) == 0 {
		return all
	}
	prompt := slices.DeleteFunc(slices.Clone(all), func(next choice) bool { return next.watch != nil && c.delayed[next.watch] > 0 })
	if len(prompt) == 0 {
		return all // Nothing else is left to do.
	}
	return prompt
}

// oneIn is the number of steps in which there is one fault, on average.
const oneIn = 12

// fault makes something go wrong, if it can now.
func (s *Simulation) fault(kind Fault, all []choice) {
	c := s.chaos
	alive := s.alive()
	var calls []choice
	for _, next := range all {
		if next.call != nil && next.call.answer == nil {
			calls = append(calls, next)
		}
	}
	watches := s.Server.Watches()
	what := ""
	switch kind {
	case FaultKill:
		victim := alive[s.random.IntN(len(alive))]
		what = victim.name
		s.Kill(victim)
		switch {
		case len(alive) == 1:
			s.Start()
		case c.rival != nil: // It must not stay.
			s.Kill(c.rival)
			c.rival, c.succeeded = nil, nil
			s.Start()
		default:
			c.succeeded = nil // One of the two is left, and stays.
		}
	case FaultRemover:
		if s.remover != nil {
			return
		}
		s.Remove(removals[s.random.IntN(len(removals))], time.Duration(1+s.random.IntN(20))*time.Minute)
		what = s.remover.name
	case FaultSquatter:
		if s.squatter != nil {
			return
		}
		squat := squats[s.random.IntN(len(squats))]
		squat.leaves = squat.leaves && s.random.IntN(2) == 0
		s.Squat(squat, time.Duration(1+s.random.IntN(30))*time.Minute)
	case FaultSlow:
		if s.webhook != nil {
			return
		}
		kinds := []string{"", "MCPServer", "ConfigMap", "Service", "StatefulSet", "Deployment"}
		s.Slow("", kinds[s.random.IntN(len(kinds))], paces[s.random.IntN(len(paces))], time.Duration(1+s.random.IntN(10))*time.Minute)
	case FaultRival:
		if len(alive) > 1 {
			return
		}
		rival := s.StartWith(render.Options{RunnerImage: "example.com/runner:rival"})
		c.rival, c.succeeded, c.until = rival, rival, s.Steps+20+s.random.IntN(400)
		what = rival.name
	case FaultTwin:
		if len(alive) > 1 {
			return
		}
		c.succeeded, c.until = alive[0], s.Steps+20+s.random.IntN(100)
		what = s.Start().name
	case FaultCut, FaultExpire, FaultBookmark, FaultDelay:
		if len(watches) == 0 {
			return
		}
		w := watches[s.random.IntN(len(watches))]
		what = w.Client + " " + w.Kind.Resource
		switch kind {
		case FaultCut:
			w.Cut()
		case FaultExpire:
			w.Expire()
		case FaultBookmark:
			s.Server.Bookmark(w)
		default:
			c.delayed[w] = s.Steps + 10 + s.random.IntN(100)
		}
	case FaultCompact:
		s.Server.Compact()
	case FaultRefuse, FaultLose:
		if len(calls) == 0 {
			return
		}
		victim := calls[s.random.IntN(len(calls))]
		what = victim.name
		if kind == FaultRefuse {
			possible := slices.DeleteFunc(possible(s.askedFor(victim.call.request), s.random.Int()), func(f *fate) bool { return f.mutates })
			victim.call.fate = possible[s.random.IntN(len(possible))]
			what += ": " + victim.call.fate.name
		} else {
			victim.call.lost = true
		}
		s.release(victim.call)
	case FaultPolicy:
		if s.policy != nil {
			return
		}
		s.Alter(alterations[s.random.IntN(len(alterations))], time.Minute+time.Duration(s.random.IntN(10))*time.Minute)
		s.policy.until = s.Steps + 20 + s.random.IntN(400)
		what = s.policy.name
	case FaultClock:
		s.wait1()
	}
	s.note(strings.TrimSpace(fmt.Sprintf("FAULT %s %s", kind, what)))
	c.left--
	c.tally[kind]++
}

// Tally returns how often each fault has happened.
func (s *Simulation) Tally() map[Fault]int {
	if s.chaos == nil {
		return nil
	}
	return maps.Clone(s.chaos.tally)
}
