// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
)

const (
	// calm is for how long nothing is written once a simulated cluster has come to rest. It is longer than the longest back-off
	// of the operator.
	calm = 11 * time.Minute
	// stepTime is how long each step takes, so that back-offs end while others work.
	stepTime = 10 * time.Millisecond
	// patience is for how long nothing is looked for at most while nothing happens. It is shorter than clients wait for an answer.
	patience = 30 * time.Second
	// endless is how many steps there may be from one rest to the next before a history counts as one that does not end.
	endless = 20_000
)

// Log is where operators log. A test that looks for what went wrong in a history may set another one.
var Log = logr.Discard()

// errGone is what the requests of a process that has been killed get.
var errGone = errors.New("the connection was closed")

// Simulation is one history of a cluster: of an API server, the controllers of Kubernetes, and operators. It runs in a synctest
// bubble, and nothing happens in it by itself: Step chooses what happens next.
type Simulation struct {
	// Server is the API server.
	Server *apiserver.Server
	// Steps counts what has happened.
	Steps int
	// Trace has what has happened, if Record is set.
	Trace  []string
	Record bool
	// Namespace is where users act.
	Namespace string
	// Endless is how many steps there may be from one rest to the next; endless by default.
	Endless int
	// Workers is how many MCPServers an operator that starts works on at a time; 1 by default.
	Workers int

	t         *testing.T
	random    *rand.Rand
	workloads *workloads
	oracle    *oracle
	// crashes are those that are still to come; each counts requests from the one before.
	crashes []crash
	// chaos is what goes wrong; nil for nothing.
	chaos *chaos
	// meddle, if set, is asked what becomes of a request, before it is carried out; nil for what should. The number is that of
	// the request among all of operators.
	meddle func(number int, r *apiserver.Request) *fate
	// withhold, if set, reports whether something that may happen has to wait, and prefer whether it comes before all else.
	withhold, prefer func(next choice) bool
	// telling, if set, is called before a watch delivers an event, and reports whether it may. The number is that of the event among
	// those of the resource.
	telling func(number int, w *apiserver.Watch) bool
	// resting, if set, is called when the cluster has come to rest, and reports whether something is to happen nevertheless.
	resting func() bool
	// prompt is set where timers are to be kept to the second, also after a long time in which nothing has happened.
	prompt bool
	// mutated is the request whose object a webhook changes; nil for none.
	mutated *apiserver.Request
	// policy is the mutating admission policy in force; nil for none.
	policy *policy
	// lifted is when the last one before it was gone.
	lifted time.Time
	// remover is a client that undoes what operators write; nil for none.
	remover *remover
	// squatter is a client that takes the names of children, nil for none, and squatted the last one that has ended.
	squatter, squatted *squatting
	// webhook is one that answers late; nil for none.
	webhook *slowWebhook
	// slowed is when the last one ended.
	slowed time.Time
	// asked are the requests of operators, and told counts the events, by resource, since users have acted.
	asked []asked
	told  map[string]int
	// wrote is when something was last written.
	wrote time.Time
	// history is what records the acts of users; nil for nothing. Recorded is the state after the last one.
	history  *history.History
	recorded history.State

	mu sync.Mutex
	// calls are the requests that wait, to be carried out or to be answered.
	calls     []*call
	operators []*Operator
	// requests counts those of operators that write.
	requests int
	// sinceCrash counts them from the last crash.
	sinceCrash int
	// killed counts the processes that were killed.
	killed int
	// retries has the writes that the API server has answered while nothing changed.
	retries retries
	// slow counts the requests that are on their way for minutes.
	slow int
}

// Run runs one history. The seed decides in which order things happen.
func Run(t *testing.T, seed uint64, history func(s *Simulation)) {
	t.Helper()
	kinds, err := allKinds()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server, err := apiserver.New(kinds...)
		if err != nil {
			t.Fatal(err)
		}
		s := &Simulation{
			Server: server, Namespace: "shop", Endless: endless, Workers: 1, t: t, random: rand.New(rand.NewPCG(seed, 0)), workloads: newWorkloads(server, kinds), told: map[string]int{},
		}
		s.oracle = newOracle(s)
		server.Committed = s.oracle.committed
		server.Admit = s.admit
		server.Webhook = &apiserver.SlowWebhook{Name: "webhook.example.com", URL: "https://webhook.example.svc:443/", Within: within, Takes: s.asks}
		addNamespace(t, server, s.Namespace)
		defer func() {
			for _, o := range s.operators {
				s.Kill(o)
			}
			time.Sleep(2 * time.Minute) // A reflector that waits to list again sees only then that it is to end.
		}()
		defer func() {
			if t.Failed() {
				t.Log("The history of this failure:\n" + strings.Join(s.Trace, "\n"))
			}
		}()
		history(s)
	})
}

var allKinds = sync.OnceValues(func() ([]*apiserver.Kind, error) {
	core, err := builtins()
	if err != nil {
		return nil, err
	}
	custom, err := customs()
	return slices.Concat(core, custom), err
})

// choice is what may happen next.
type choice struct {
	name string
	// selects tells watches of one resource apart.
	selects string
	do      func()
	// call and watch are what the choice is about; nil for something else.
	call  *call
	watch *apiserver.Watch
	// namespace is that of the object of a call or an event.
	namespace string
}

// choices returns all that may happen next, in an order that is the same in each run.
func (s *Simulation) choices() []choice {
	synctest.Wait()
	s.mu.Lock()
	calls := slices.Clone(s.calls)
	s.mu.Unlock()
	var all []choice
	for _, c := range calls {
		all = append(all, choice{name: c.String(), selects: c.request.Selects(), do: func() { s.carryOut(c) }, call: c, namespace: c.request.Namespace})
	}
	for _, w := range s.Server.Watches() {
		if event, namespace, name := w.Next(); event != "" {
			all = append(all, choice{
				name:    fmt.Sprintf("tells %s: %s %s %s/%s", w.Client, event, w.Kind.Resource, namespace, name),
				selects: w.Selects, do: func() { s.deliver(w) }, watch: w, namespace: namespace,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.selects, b.selects))
	})
	for _, task := range s.workloads.waiting() {
		all = append(all, choice{name: task.name, do: func() {
			// A controller that comes too late in a namespace that ends has nothing to do there.
			if err := task.do(); err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				s.t.Fatalf("%s: %v", task.name, err)
			}
		}})
	}
	return slices.Concat(all, s.removes(), s.squatsNext())
}

// deliver gives the client of a watch its next event.
func (s *Simulation) deliver(w *apiserver.Watch) {
	s.told[w.Kind.Resource]++
	if s.telling == nil || s.telling(s.told[w.Kind.Resource], w) {
		w.Deliver()
	}
}

// carryOut lets a request go on, unless it is the one at which its operator is killed.
func (s *Simulation) carryOut(c *call) {
	if c.answer == nil {
		s.asked = append(s.asked, s.askedFor(c.request))
		if s.meddle != nil {
			if c.fate = s.meddle(len(s.asked), c.request); c.fate != nil {
				s.note("FAULT " + c.fate.name)
			}
		}
	}
	if c.answer == nil && c.request.Writes() {
		s.requests++
		s.sinceCrash++
		c.number = s.sinceCrash
	}
	if len(s.crashes) == 0 || c.number != s.crashes[0].at {
		s.release(c)
		return
	}
	switch phase := s.crashes[0].phase; {
	case phase == Before && c.answer == nil, phase == Committed && c.answer != nil:
		s.crash(c.operator)
	case phase == Answered && c.answer != nil:
		s.release(c)
		synctest.Wait()
		s.crash(c.operator)
	default:
		s.release(c)
	}
}

// crash replaces a process, or does to it what else the crash says.
func (s *Simulation) crash(o *Operator) {
	instead := s.crashes[0].instead
	s.crashes, s.sinceCrash = s.crashes[1:], 0
	if instead != nil {
		instead(o)
		return
	}
	s.note("kills " + o.name)
	s.Kill(o)
	if o.again != nil {
		o.again()
		return
	}
	s.Start()
}

// release lets a request go on.
func (s *Simulation) release(c *call) {
	s.mu.Lock()
	s.calls = slices.DeleteFunc(s.calls, func(other *call) bool { return other == c })
	s.mu.Unlock()
	c.verdict <- true
}

func (s *Simulation) note(what string) {
	if s.Record {
		s.Trace = append(s.Trace, what)
	}
}

// Step lets one thing happen. It returns false if there is nothing to happen but that time passes.
func (s *Simulation) Step() bool {
	s.endWebhook()
	all := s.mischief(s.choices())
	if s.withhold != nil {
		all = slices.DeleteFunc(all, s.withhold)
	}
	if s.prefer != nil && slices.ContainsFunc(all, s.prefer) {
		all = slices.DeleteFunc(all, func(next choice) bool { return !s.prefer(next) })
	}
	if len(all) == 0 {
		return false
	}
	next := all[s.random.IntN(len(all))]
	s.note(next.name)
	s.Steps++
	next.do()
	time.Sleep(stepTime)
	return true
}

// Settle lets things happen until the cluster has come to rest. Then writes that change nothing are few, no refused write is sent again
// more often than back-offs allow, and no status says that all is applied where it is not.
func (s *Simulation) Settle() {
	s.t.Helper()
	s.settle()
	for s.checkRetries() {
		s.settle()
	}
	s.report(slices.Concat(s.oracle.misreported(), s.oracle.unserved(), s.oracle.misread(), s.oracle.untold(), s.oracle.oversized()))
}

func (s *Simulation) settle() {
	s.t.Helper()
	began := s.Steps
	for quiet := time.Duration(0); ; {
		version, processes, policy, squatter := s.Server.Version(), len(s.operators), s.policy, s.squatter
		for s.Step() {
			if s.Steps-began > s.Endless {
				s.t.Fatalf("no rest after %d steps; the last were:\n%s", s.Endless, strings.Join(s.last(30), "\n"))
			}
		}
		if s.Server.Version() != version || len(s.operators) != processes {
			quiet = 0 // A process that has just started has yet to try what is refused.
		}
		if s.policy != policy || s.squatter != squatter {
			quiet = 0 // What the policy has changed has yet to be written again, and so has what somebody else's object was in the way of.
		}
		if s.chaos != nil && s.chaos.succeeded != nil {
			s.chaos.until = 0 // The earlier process has nothing to do any more, and ends.
			quiet = 0
		}
		if s.dawdles() {
			quiet = 0
		}
		if quiet == 0 {
			s.retries.forget()
		}
		if s.remover != nil || s.webhook != nil {
			quiet = 0
		}
		if quiet >= calm {
			return // What was due within that time has happened, too.
		}
		pause := min(max(time.Second, quiet/4), patience)
		if s.prompt {
			pause = time.Second
		}
		time.Sleep(pause)
		quiet += pause
		rests := restsWithSquatter
		if time.Since(s.slowed) < calm {
			rests = calm // The waits after what a webhook did not let through are as long.
		}
		if s.squatter != nil && quiet >= rests {
			s.report(s.oracle.misread())
			s.oracle.noteUntold()
			quiet = 0
		}
		if s.policy != nil && quiet >= s.policy.rests {
			s.report(s.oracle.misreported())
			s.lift()
			quiet = 0
		}
		if quiet >= calm && s.resting != nil && s.resting() {
			quiet = 0
		}
	}
}

// wait1 lets a second pass.
func (s *Simulation) wait1() { time.Sleep(time.Second) }

func (s *Simulation) last(n int) []string { return s.Trace[max(0, len(s.Trace)-n):] }

// Create creates an object as a user.
func (s *Simulation) Create(group, kind string, obj runtime.Object) {
	s.t.Helper()
	const manager = "kubectl-create"
	k, sent := s.Server.KindOf(group, kind), obj.DeepCopyObject()
	access(obj).SetNamespace(s.Namespace)
	if err := s.Server.Create(k, obj, manager); err != nil {
		s.t.Fatalf("cannot create %s %s: %v", kind, access(obj).GetName(), err)
	}
	s.acted(func() history.Act { return actOf(k, "create", access(sent).GetName(), manager, sent) })
}
