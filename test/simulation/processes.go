// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/metrics"
	"github.com/freehold-dev/freehold/pkg/render"
)

// crash says when an operator is killed: at the n-th request that writes, counted from 1 over all operators.
type crash struct {
	at    int
	phase Phase
	// instead, if set, is done to the operator instead.
	instead func(o *Operator)
}

// Phase is how far a request has come.
type Phase int

const (
	// Before is a request that is not carried out.
	Before Phase = iota
	// Committed is a request that is carried out, and not answered.
	Committed
	// Answered is a request that is answered, while the next one is not carried out.
	Answered
)

// String names the phase.
func (p Phase) String() string { return []string{"before", "committed", "answered"}[p] }

// call is a request that waits for the scheduler.
type call struct {
	operator *Operator
	request  *apiserver.Request
	// number is that of a write, from 1.
	number int
	// answer is set once it is carried out.
	answer *apiserver.Answer
	// lost is set when the answer is lost.
	lost bool
	// fate, if set, is what becomes of it.
	fate *fate
	// verdict is sent to when the request may go on; false breaks it off.
	verdict chan bool
}

func (c *call) String() string {
	what := "serves "
	if c.answer != nil {
		what = "answers "
	}
	return what + c.operator.name + ": " + c.request.String()
}

// Operator is one process of the operator, or of the plugin.
type Operator struct {
	*controller.Controller

	name string
	stop context.CancelFunc
	// connected ends when the process is killed.
	connected  context.Context //nolint:containedctx // it is that of a process
	disconnect context.CancelFunc
	ended      chan error
	dead       bool
	// again starts its successor when it has been killed; nil starts an operator.
	again func()
}

// newProcess returns a process that has not started.
func (s *Simulation) newProcess(of string) *Operator {
	o := &Operator{name: fmt.Sprintf("%s-%d", of, len(s.operators)), ended: make(chan error, 1)}
	o.connected, o.disconnect = context.WithCancel(s.t.Context())
	return o
}

// Start starts a process of the operator.
func (s *Simulation) Start() *Operator {
	s.t.Helper()
	return s.StartWith(render.Options{})
}

// StartWith starts a process of the operator with settings.
func (s *Simulation) StartWith(options render.Options) *Operator {
	s.t.Helper()
	o := s.newProcess("operator")
	config := s.Server.Connect(o.name, s.between(o), true)
	// The clients are those of cmd/freehold.
	config.Wrap(apply.OwnWaits)
	config.Wrap(apply.Deadline)
	builtin := rest.CopyConfig(config)
	builtin.ContentType, builtin.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(builtin)
	if err != nil {
		s.t.Fatal(err)
	}
	servers, err := versioned.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	o.Controller, err = controller.New(controller.Config{Core: core, Servers: servers, Options: options, Workers: s.Workers, Observer: metrics.NewOutcomes()})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(s.t.Context(), Log))
	o.stop = stop
	s.mu.Lock()
	s.operators = append(s.operators, o)
	s.mu.Unlock()
	go func() { o.ended <- o.Run(ctx) }()
	return o
}

// Kill ends a process at once: what it has sent and what has not been carried out is lost.
func (s *Simulation) Kill(o *Operator) {
	s.t.Helper()
	s.mu.Lock()
	if o.dead {
		s.mu.Unlock()
		return
	}
	o.dead = true
	s.killed++
	calls := s.calls
	s.calls = nil
	for _, c := range calls {
		if c.operator == o {
			c.verdict <- false
		} else {
			s.calls = append(s.calls, c)
		}
	}
	s.mu.Unlock()
	o.disconnect()
	o.stop()
	<-o.ended //nolint:errcheck // it was killed
}

// alive returns the processes that have not been killed, in the order of their starts.
func (s *Simulation) alive() []*Operator {
	return slices.DeleteFunc(slices.Clone(s.operators), func(o *Operator) bool { return o.dead })
}

// between is between a process and the API server.
func (s *Simulation) between(o *Operator) apiserver.Interceptor {
	return func(r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
		return s.intercept(o, r, serve)
	}
}

// watchTime is how long a watch lasts, in seconds: as long as client-go asks for at least.
const watchTime = "300"

// intercept is what happens there to a request.
func (s *Simulation) intercept(o *Operator, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
	if r.Verb == "watch" {
		r.Query.Set("timeoutSeconds", watchTime) // client-go draws a number by chance.
	}
	if r.Writes() {
		defer r.EndWith(o.connected)()
	}
	served := serve
	serve = func() apiserver.Answer {
		answer := served()
		s.oracle.applied(r, answer)
		s.oracle.checkRace(r, answer)
		return answer
	}
	c := &call{operator: o, request: r, verdict: make(chan bool, 1)}
	if !s.wait(c) {
		return apiserver.Answer{Broken: errGone}
	}
	var answer apiserver.Answer
	if c.fate != nil {
		answer = c.fate.do(s, r, serve)
	} else {
		answer = serve()
		s.retries.served(r, answer)
	}
	if c.lost {
		return apiserver.Answer{Broken: errGone}
	}
	if r.Writes() {
		c.answer = &answer
		if !s.wait(c) {
			return apiserver.Answer{Broken: errGone}
		}
		if c.fate == nil && !c.lost {
			s.oracle.answered(r)
		}
	}
	return answer
}

// wait queues a request, and returns whether it may go on.
func (s *Simulation) wait(c *call) bool {
	s.mu.Lock()
	if c.operator.dead {
		s.mu.Unlock()
		return false
	}
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	return <-c.verdict
}
