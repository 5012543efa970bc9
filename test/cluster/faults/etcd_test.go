// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/test/harness"
)

// badAnswers are what API servers answer for a while that have trouble with etcd, or that do not serve a resource yet. None
// has a reason, as if the body could never be stored.
var badAnswers = map[string]struct {
	code int
	body string
}{
	"leader":   {http.StatusInternalServerError, faultproxy.EtcdError("leader changed")},
	"timeout":  {http.StatusInternalServerError, faultproxy.EtcdError("request timed out")},
	"space":    {http.StatusInternalServerError, faultproxy.EtcdError("mvcc: database space exceeded")},
	"unserved": {http.StatusNotFound, "404 page not found\n"},
	"webhook": {http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"admission webhook \"x.example.com\" denied the request: not now","reason":"Invalid","code":422}`},
}

// patches matches patches of one object, or of a subresource of it.
func patches(resource, name string) faultproxy.Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+resource+"/"+name)
	}
}

// badTimes is how often a write is answered badly: the waits in between are fractions of a second, but for the webhook's.
const badTimes = 2

// TestBadAnswersAreForgotten answers writes as an API server does whose etcd has no leader or no space: the creation of a
// StatefulSet, the finalizer's apply and release, and the status. Each is made again without anything else happening, and
// without a restart of the operator.
func TestBadAnswersAreForgotten(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	proxy := s.Proxy(t, faultproxy.Options{})
	began := s.Mark(t)
	s.OperateThrough(t, proxy)
	faults := map[string]*faultproxy.Fault{}
	for kind, answer := range badAnswers {
		fail := func(scene, resource, subresource string) {
			name := scene + "-" + kind
			faults[name] = proxy.Fail(patches(resource, name+subresource), badTimes, answer.code, answer.body)
			s.Create(t, harness.HTTPServer(name))
		}
		fail("create", "statefulsets", "")
		fail("finalizer", "mcpservers", "")
		fail("status", "mcpservers", "/status")
		s.Create(t, harness.HTTPServer("release-"+kind))
	}
	for name := range faults {
		s.AwaitStatus(t, name, harness.Fine...)
	}
	for kind, answer := range badAnswers {
		name := "release-" + kind
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitSettled(t, name)
		faults[name] = proxy.Fail(patches("mcpservers", name), badTimes, answer.code, answer.body)
		s.Delete(t, name, metav1.DeletePropagationBackground)
	}
	for kind := range badAnswers {
		s.AwaitGone(t, "release-"+kind)
	}
	for name, fault := range faults {
		if n := len(fault.Caught()); n != badTimes {
			t.Errorf("%s: %d writes were answered badly, want %d", name, n, badTimes)
		}
	}
	// What reached the API server was accepted at once; what was answered badly was sent again and nothing besides.
	for _, e := range s.Writes(t, began) {
		if e.Resource == "statefulsets" && strings.HasPrefix(e.Name, "create-") && e.Code != http.StatusCreated && e.Code != http.StatusOK && e.Code != http.StatusConflict {
			t.Errorf("%v", e)
		}
	}
	for kind := range badAnswers {
		if n := s.created(t, began, "create-"+kind); n != 1 {
			t.Errorf("the StatefulSet of create-%s was created %d times", kind, n)
		}
	}
}

// created counts how often a StatefulSet was created since the mark.
func (s *stage) created(t *testing.T, since audit.Mark, name string) int {
	t.Helper()
	return s.creations(t, since)["statefulsets/"+name]
}

// TestDelaysAreShown has etcd without a leader for longer than the first retry takes. What is held back is shown, and what
// serves goes on; and all is well when etcd is.
func TestDelaysAreShown(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	proxy := s.Proxy(t, faultproxy.Options{})
	s.OperateThrough(t, proxy)
	s.Create(t, harness.HTTPServer("held"))
	s.AwaitStatus(t, "held", harness.Fine...)
	s.AwaitSettled(t, "held")
	fault := proxy.Fail(patches("services", "mcp-held-proxy"), -1, http.StatusInternalServerError, faultproxy.EtcdError("leader changed"))
	s.Edit(t, "held", func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })
	told := harness.Expectation{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Retrying",
		Message: []string{"service/mcp-held-proxy", "code 500", "ten minutes"},
	}
	server := s.AwaitStatus(t, "held", told,
		harness.Expectation{Condition: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Retrying"},
		harness.Expectation{Condition: v1beta1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "Retrying"})
	if status := server.Status; status.Phase != v1beta1.PhasePending || status.URL == "" {
		t.Errorf("the phase is %s and the URL %q, and it serves while a write is retried", status.Phase, status.URL)
	}
	s.AwaitOneWarning(t, "held", told)
	// Waits that did not grow would show by then: four of seven requests would come before they are due.
	harness.Eventually(t, "seven refusals", func(context.Context) error {
		if n := len(fault.Caught()); n < 7 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	fault.Stop()
	s.AwaitStatus(t, "held", harness.Fine...)
	// A wait begins with the answer, so it ends no sooner than it should, however late a busy machine made the request before it.
	// A pass because of an event may try in between, which neither ends nor prolongs the wait.
	caught, wait, between := fault.Caught(), apply.Policies()[apply.ClassTransient].FirstWait, 0
	due := caught[0].Add(wait)
	for _, at := range caught[1:] {
		if at.Before(due) {
			between++
			continue
		}
		wait *= 2
		due = at.Add(wait)
	}
	if between > 2 {
		t.Errorf("the write was sent %d times before it was due: %v", between, caught)
	}
}
