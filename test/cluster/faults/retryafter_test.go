// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/test/harness"
)

// anHour is longer than any test waits, in seconds.
const anHour = 3600

// TestRetryAfterHoldsUpNothingElse has as many MCPServers whose writes are answered with "send it again in an hour" as the operator has
// workers. Another MCPServer is created and edited meanwhile, and their own writes are sent again after the operator's waits.
func TestRetryAfterHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	proxy := s.Proxy(t, faultproxy.Options{})
	faults := map[string]*faultproxy.Fault{}
	for name, code := range map[string]int{"unavailable": http.StatusServiceUnavailable, "busy": http.StatusTooManyRequests} {
		faults[name] = proxy.Fail(patches("statefulsets", name), -1, code, faultproxy.Later(code, anHour))
	}
	s.OperateThrough(t, proxy, "--workers=2")
	for name := range faults {
		s.Create(t, harness.HTTPServer(name))
		s.AwaitStatus(t, name, harness.Expectation{
			Condition: v1beta1.ConditionApplied, Status: "False", Reason: "Retrying", Message: []string{"statefulset.apps/" + name},
		})
	}
	s.Create(t, harness.HTTPServer("free"))
	s.AwaitStatus(t, "free", harness.Fine...)
	s.Edit(t, "free", func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })
	s.AwaitStatus(t, "free", harness.Fine...)
	for name, fault := range faults {
		fault.Stop()
		s.AwaitStatus(t, name, harness.Fine...)
	}
}

// TestRetryAfterBlindsNoWatch answers the first lists and watches of MCPServers with "send it again in an hour".
func TestRetryAfterBlindsNoWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	proxy := s.Proxy(t, faultproxy.Options{})
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		proxy.Fail(faultproxy.Reads(toolhive.GroupName, "mcpservers"), 1, code, faultproxy.Later(code, anHour))
	}
	s.OperateThrough(t, proxy)
	s.Create(t, harness.HTTPServer("seen"))
	s.AwaitStatus(t, "seen", harness.Fine...)
}
