// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// asked is a request of an operator.
type asked struct {
	// text describes it.
	text string
	// verb, and the resource with its subresource.
	verb, resource string
	// lists is set for a list, and for a watch that lists first.
	lists bool
	// writes is set for one that changes something, and creates for one whose object does not exist yet.
	writes, creates bool
}

func (s *Simulation) askedFor(r *apiserver.Request) asked {
	a := asked{text: r.String(), verb: r.Verb, resource: r.Path, writes: r.Writes()}
	a.lists = r.Verb == "list" || r.Verb == "watch" && r.Query.Get("sendInitialEvents") == "true"
	if r.Kind != nil {
		a.resource = r.Kind.Resource
		if r.Subresource != "" {
			a.resource += "/" + r.Subresource
		}
		_, exists := s.Server.Get(r.Kind, r.Namespace, r.Name)
		a.creates = a.writes && r.Verb != "delete" && r.Subresource == "" && !exists
	}
	return a
}

// fate is what becomes of a request instead of what should.
type fate struct {
	name string
	// group is of those that the clients and the operator take in the same way; empty for one of its own.
	group string
	// of reports whether a request may have it; nil for any.
	of func(a asked) bool
	// mutates is set where a webhook changes what is stored.
	mutates bool
	// passing is set where the request is only slow.
	passing bool
	// broken is set where clients send a request that reads again by themselves, as the connection was reset.
	broken bool
	// takes is how long the request is on its way, or how long the operator may believe what is not so.
	takes time.Duration
	// lies is set for an answer that is not so. An API server that lags gives it for a moment, and none gives it for minutes.
	lies bool
	// do answers the request.
	do func(s *Simulation, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer
}

// The requests that a fate is for.
func writing(a asked) bool  { return a.writes }
func creating(a asked) bool { return a.creates }
func listing(a asked) bool  { return a.lists }
func storing(a asked) bool  { return a.writes && a.verb != "delete" }

// finding is for requests that need an object. An apply makes one that does not exist, unless it is about a subresource.
func finding(a asked) bool { return a.verb != "apply" || strings.Contains(a.resource, "/") }

// slowness is longer than an API server works on a request, than a client of an operator waits, and than a lease lasts.
const slowness = 5 * time.Minute

// errReset is what a client gets whose connection was reset.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// refusing is a fate in which the request is not carried out.
func refusing(name string, of func(a asked) bool, refusal func(r *apiserver.Request) error) *fate {
	return &fate{name: name, of: of, do: func(_ *Simulation, r *apiserver.Request, _ func() apiserver.Answer) apiserver.Answer {
		return apiserver.Refuse(refusal(r))
	}}
}

// denying is a fate in which a webhook denies a request. The API server passes its code on.
func denying(result metav1.Status) *fate {
	return refusing(fmt.Sprintf("a webhook denies with code %d", max(result.Code, http.StatusBadRequest)), writing, func(*apiserver.Request) error {
		return apiserver.Denied("webhook.example.com", result)
	})
}

// inAnHour is when a webhook, or an API server, asks for the next attempt.
var inAnHour = &metav1.StatusDetails{RetryAfterSeconds: 3600}

// answering is a fate in which another server answers, and the request is not carried out.
func answering(name string, code int, contentType, body string) *fate {
	return &fate{name: name, do: func(*Simulation, *apiserver.Request, func() apiserver.Answer) apiserver.Answer {
		return apiserver.Answer{Code: code, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)}
	}}
}

// carrying is a fate in which the request is carried out, and then answered otherwise.
func carrying(name string, of func(a asked) bool, answer func(served apiserver.Answer) apiserver.Answer) *fate {
	return &fate{name: name, of: of, do: func(_ *Simulation, _ *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
		served := serve()
		if served.Watch != nil {
			_ = served.Watch.Close() // Nobody reads it.
			served.Watch, served.Body = nil, []byte{}
		}
		return answer(served)
	}}
}

// The groups of fates.
const (
	unavailable = "the API server says that it cannot, and the request is not carried out"
	unanswered  = "the request is carried out, and the client does not learn it"
	denied      = "admission refuses the request"
)

// grouped puts fates into a group.
func grouped(group string, members ...*fate) []*fate {
	for _, f := range members {
		f.group = group
	}
	return members
}

// possible returns the fates that a request may have: of each group one, which the turn says.
func possible(a asked, turn int) (chosen []*fate) {
	groups := map[string][]*fate{}
	for _, f := range fates {
		switch {
		case f.of != nil && !f.of(a):
		case f.group == "":
			chosen = append(chosen, f)
		default:
			groups[f.group] = append(groups[f.group], f)
		}
	}
	for _, group := range []string{unavailable, unanswered, denied} {
		if members := groups[group]; len(members) > 0 {
			chosen = append(chosen, members[turn%len(members)])
		}
	}
	return chosen
}

func lying(f *fate) *fate {
	f.lies = true
	return believing(f)
}

// believed is for how long an operator may take for gone what the API server says is not there, without an event that says otherwise.
const believed = time.Minute

func believing(f *fate) *fate {
	f.takes = believed
	return f
}

func breaking(f *fate) *fate {
	f.broken = true
	return f
}

// bare is an internal error as etcd causes it: the API server knows no reason for it.
func bare(text string) func(*apiserver.Request) error {
	return func(*apiserver.Request) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text}}
	}
}

func resource(r *apiserver.Request) schema.GroupResource {
	if r.Kind == nil {
		return schema.GroupResource{}
	}
	return r.Kind.GroupResource()
}

// fates are the answers of API servers in trouble, of what is in front of them, and of webhooks.
var fates = slices.Concat(
	grouped(unavailable,
		refusing("500, with a reason", nil, func(*apiserver.Request) error {
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}),
		refusing("500 of etcd: time-out", nil, bare("etcdserver: request timed out")),
		refusing("500 of etcd: unavailable", nil, bare(
			`rpc error: code = Unavailable desc = error reading from server: read tcp 127.0.0.1:4011->127.0.0.1:2379: read: connection reset by peer`)),
		refusing("503", nil, func(*apiserver.Request) error {
			return apierrors.NewServiceUnavailable("the server is going")
		}),
		refusing("504, not carried out", nil, func(*apiserver.Request) error {
			return apierrors.NewTimeoutError("the server did not answer in time", 0)
		}),
		refusing("a webhook does not answer", writing, func(*apiserver.Request) error {
			return apierrors.NewInternalError(errors.New(`failed calling webhook "webhook.example.com": failed to call webhook: ` +
				`Post "https://webhook.example.svc:443/?timeout=10s": context deadline exceeded`))
		}),
	),
	grouped(unanswered,
		carrying("504, carried out", writing, func(apiserver.Answer) apiserver.Answer {
			return apiserver.Refuse(apierrors.NewTimeoutError("the server did not answer in time", 0))
		}),
		breaking(carrying("reset, carried out", nil, func(apiserver.Answer) apiserver.Answer {
			return apiserver.Answer{Broken: errReset}
		})),
		carrying("cut short", nil, func(served apiserver.Answer) apiserver.Answer {
			served.Body, served.Torn = served.Body[:len(served.Body)/2], io.ErrUnexpectedEOF
			return served
		}),
	),
	grouped(denied,
		denying(metav1.Status{Message: "no such luck"}), // A webhook that names no code is answered with 400, and without a reason.
		denying(metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "no such luck"}),
		denying(metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "no such luck"}),
		denying(metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonGone, Message: "no such luck"}),
		denying(metav1.Status{Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge, Message: "no such luck"}),
		denying(metav1.Status{Code: http.StatusTooManyRequests, Details: inAnHour}),
		denying(metav1.Status{Code: http.StatusInternalServerError, Details: inAnHour}),
		denying(metav1.Status{Code: http.StatusServiceUnavailable, Details: inAnHour}),
		refusing("a webhook forbids", writing, func(r *apiserver.Request) error {
			return apierrors.NewForbidden(resource(r), r.Name, errors.New("no such luck"))
		}),
		refusing("the quota is exceeded", creating, func(r *apiserver.Request) error {
			return apierrors.NewForbidden(resource(r), r.Name, fmt.Errorf(
				"exceeded quota: objects, requested: count/%[1]s=1, used: count/%[1]s=9, limited: count/%[1]s=9", resource(r)))
		}),
	),
	grouped("",
		refusing("429, with Retry-After", nil, func(*apiserver.Request) error {
			return apierrors.NewTooManyRequests("the server is busy", 3600)
		}),
		answering("502", http.StatusBadGateway, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>\n"),
		&fate{name: "reset, not carried out", broken: true, do: func(*Simulation, *apiserver.Request, func() apiserver.Answer) apiserver.Answer {
			return apiserver.Answer{Broken: errReset}
		}},
		// An API server is behind what the client has seen.
		&fate{name: "a version to come", of: listing, do: func(_ *Simulation, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
			r.Query.Set("resourceVersion", "999999999")
			return serve()
		}},
		// An API server that lags does not serve a resource yet, does not know the namespace yet, or reads an earlier state.
		answering("404 of the path", http.StatusNotFound, "text/plain", "404 page not found\n"),
		believing(refusing("404 of the namespace", creating, func(r *apiserver.Request) error {
			return apierrors.NewNotFound(corev1.Resource("namespaces"), r.Namespace)
		})),
		lying(refusing("404 of the object", finding, func(r *apiserver.Request) error {
			return apierrors.NewNotFound(resource(r), r.Name)
		})),
		&fate{name: "slow to arrive", passing: true, takes: slowness, do: func(s *Simulation, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
			if !s.dawdle(r) {
				return apiserver.Answer{Broken: r.Context().Err()}
			}
			return serve()
		}},
		&fate{name: "slow to be answered", passing: true, takes: slowness, do: func(s *Simulation, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
			answer := serve()
			if !s.dawdle(r) {
				return apiserver.Answer{Broken: r.Context().Err()}
			}
			return answer
		}},
		&fate{name: "a webhook mutates", of: storing, mutates: true, do: func(s *Simulation, r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
			s.mutated = r
			defer func() { s.mutated = nil }()
			return serve()
		}},
	),
)

// dawdle waits as long as a slow request takes. It returns false if the client does not wait so long.
func (s *Simulation) dawdle(r *apiserver.Request) bool {
	s.mu.Lock()
	s.slow++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.slow--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(slowness):
		return true
	case <-r.Context().Done():
		return false
	}
}

// dawdles reports whether a request is on its way for minutes.
func (s *Simulation) dawdles() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow > 0
}

// mark is the label and the annotation that the webhook sets, and sidecar the container that it injects.
const (
	mark    = "webhook.example.com/seen"
	sidecar = "injected"
)

// admit is admission: a policy, and a webhook that changes what one request stores.
//
// An API server computes managedFields before it calls mutating webhooks, for an apply and for every other write, and does not
// compute them again. What a webhook adds belongs to nobody. Afterwards it sets defaults again.
func (s *Simulation) admit(r *apiserver.Request, obj, _ runtime.Object) error {
	if obj != nil && s.policy.concerns(r) {
		s.policy.admit(s, r, obj)
	}
	if obj == nil || s.mutated != r {
		return nil
	}
	metadata := access(obj)
	metadata.SetLabels(withLabel(metadata.GetLabels(), mark, "yes"))
	metadata.SetAnnotations(withLabel(metadata.GetAnnotations(), mark, "yes"))
	if template := templateOf(obj); template != nil {
		template.Annotations = withLabel(template.Annotations, mark, "yes")
		names := map[string]bool{}
		for i := range template.Spec.Containers {
			names[template.Spec.Containers[i].Name] = true
		}
		if !names[sidecar] {
			template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: sidecar, Image: "example.com/sidecar"})
		}
	}
	r.Kind.Strategy.Default(obj)
	return nil
}
