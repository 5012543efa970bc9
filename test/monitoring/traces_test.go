// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// proxyImage is the image of the proxy's container, and what somebody else sets it to.
const (
	proxyImage = "/spec/template/spec/containers/0/image"
	otherImage = "example.com/other:1"
)

// written are the writes of an operator in a namespace, without events.
func written(t *testing.T, ns *harness.Namespace, since audit.Mark) []*audit.Event {
	t.Helper()
	return slices.DeleteFunc(ns.Writes(t, since), func(e *audit.Event) bool { return e.Resource == "events" })
}

// single returns the reads of one object each by the operator.
func single(t *testing.T, ns *harness.Namespace, since audit.Mark) []*audit.Event {
	t.Helper()
	read := func(e *audit.Event) bool { return e.Verb == "get" && e.Namespace == ns.Name }
	events, _, err := ns.Audit.Since(since, ns.ByOperator(), read)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A collector gets one span for each look at an MCPServer, and below it one for each request that the API server got, no
// more and no fewer. The API server goes on with the trace, and its own spans say which entries of the audit log they are.
func TestTraces(t *testing.T) {
	ns := env.Namespace(t)
	const secret = "hunter2-hunter2"
	start := ns.Mark(t)
	process := ns.Operate(t, "--tracing-endpoint="+traces.address)
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.Env = []v1beta1.EnvVar{{Name: "TOKEN", Value: secret}}
	}))
	ns.AwaitSettled(t, "web")
	harness.Stop(t, process)
	// An operator that was there would see the conflict without a request.
	ns.MustPatch(t, harness.Hand, harness.Proxy, "web", harness.Replace(proxyImage, otherImage))
	process = ns.Operate(t, "--tracing-endpoint="+traces.address)
	ns.AwaitWrites(t, start, "the refused apply", func(events []*audit.Event) bool {
		return slices.ContainsFunc(events, func(e *audit.Event) bool { return e.Code == http.StatusConflict && e.FieldManager == managers.Proxy })
	})
	ns.Edit(t, "web", func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{v1beta1.AnnotationTake: "deployment.apps/web:.spec.template"}
	})
	ns.AwaitServer(t, "web", "has its field again", func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsTaken) {
			return fmt.Errorf("conditions %v", server.Status.Conditions)
		}
		return nil
	})
	ns.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio }) // It has a Service less.
	ns.AwaitSettled(t, "web")
	harness.Stop(t, process) // The last spans are sent before its end.

	passes := map[string]span{}
	var requests []span
	for _, one := range traces.of(ns.Name) {
		if strings.Contains(one.String(), secret) {
			t.Errorf("a secret is in %v", one)
		}
		if attribute(one.resource, "service.version") == "" || attribute(one.resource, "service.instance.id") == "" {
			t.Errorf("whose span is it: %v", one.resource)
		}
		if one.GetName() != "sync" {
			requests = append(requests, one)
			continue
		}
		passes[string(one.GetSpanId())] = one
		if one.attribute("freehold.mcpserver") != "web" || one.attribute("freehold.outcome") == "" || len(one.GetParentSpanId()) > 0 {
			t.Errorf("a pass of which is told: %v", one)
		}
	}
	writes := written(t, ns, start)
	reads := single(t, ns, start)
	if len(requests) != len(writes)+len(reads) || len(writes) < 12 || len(reads) == 0 {
		t.Errorf("%d spans for %d writes and %d reads", len(requests), len(writes), len(reads))
	}
	checkOutcomes(t, passes)
	for _, name := range []string{"apply", "edit managedFields", "delete", "get"} {
		if !slices.ContainsFunc(requests, func(one span) bool { return one.GetName() == name }) {
			t.Errorf("there was no %s", name)
		}
	}
	checkDocumented(t, append(slices.Collect(maps.Values(passes)), requests...))

	byID := map[string]*audit.Event{}
	for _, e := range slices.Concat(writes, reads) {
		byID[e.ID] = e
	}
	// The API server sends its spans every five seconds.
	harness.Eventually(t, "the API server's spans", func(context.Context) error {
		next := traces.next()
		for _, one := range requests {
			if _, ok := next[string(one.GetSpanId())]; !ok {
				return fmt.Errorf("none goes on with %v", one)
			}
		}
		return nil
	})
	next := traces.next()
	for _, one := range requests {
		if _, ok := passes[string(one.GetParentSpanId())]; !ok {
			t.Errorf("it is part of no pass: %v", one)
		}
		id := next[string(one.GetSpanId())].attribute("audit-id")
		e, ok := byID[id]
		if !ok {
			t.Errorf("the API server has no request %q, or another span is about it, too: %v", id, one)
			continue
		}
		delete(byID, id)
		checkRequest(t, one, e)
	}
	for _, e := range byID {
		t.Errorf("no span is about %v", e)
	}
}

// checkRequest compares a span with what the API server says of the request.
func checkRequest(t *testing.T, one span, e *audit.Event) {
	t.Helper()
	name, manager := "apply", one.attribute("freehold.writer")
	switch {
	case e.Verb == "delete", e.Verb == "get":
		name, manager = e.Verb, ""
	case e.FieldManager == managers.Ownership:
		name, manager = "edit managedFields", managers.Ownership
	}
	code := one.attribute("http.response.status_code")
	failed := one.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR
	if one.GetName() != name || manager != e.FieldManager || failed == e.Succeeded() || failed && code != fmt.Sprint(e.Code) {
		t.Errorf("%v is told as %v", e, one)
	}
	if !strings.HasSuffix(one.attribute("freehold.object"), "/"+e.Name) {
		t.Errorf("%v is told to be about %s", e, one.attribute("freehold.object"))
	}
	if version := one.attribute("freehold.resource_version"); (version == "") == (e.Succeeded() && e.Verb != "delete") {
		t.Errorf("%v is told to end with resourceVersion %q", e, version)
	}
}

// checkDocumented looks for every name that spans bear in the documentation.
func checkDocumented(t *testing.T, spans []span) {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range spans {
		names[one.GetName()] = true
		for _, a := range one.GetAttributes() {
			names[a.GetKey()] = true
		}
	}
	for name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/monitoring.md does not tell of %s", name)
		}
	}
}

// checkOutcomes looks at how the passes ended.
func checkOutcomes(t *testing.T, passes map[string]span) {
	t.Helper()
	outcomes := map[string]int{}
	for _, one := range passes {
		outcome := one.attribute("freehold.outcome")
		outcomes[outcome]++
		const held = `Conflict of deployment.apps/web: .spec.template.spec.containers[name="toolhive"].image is held by ` + harness.Hand
		if outcome == "conflict" {
			if diff := cmp.Diff(held, one.GetStatus().GetMessage()); diff != "" {
				t.Errorf("the conflict (-want +got):\n%s", diff)
			}
		}
		if generation := one.attribute("freehold.generation"); outcome == "done" && generation == "" {
			t.Errorf("a pass without a generation: %v", one)
		}
	}
	if outcomes["done"] == 0 || outcomes["conflict"] == 0 {
		t.Errorf("passes ended as %v", slices.Sorted(maps.Keys(outcomes)))
	}
}

// A collector that takes connections and answers nothing holds nothing up: neither the work, nor the lease at the end. The
// end itself waits for it, but not for long.
func TestACollectorThatHangsHoldsNothingUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ns := env.Namespace(t)
	process, log := ns.OperateLogged(t, "--tracing-endpoint="+listener.Addr().String(), "--logging-format=json",
		"--leader-elect=true", "--leader-elect-resource-namespace="+operator.Namespace)
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "web")

	ending := ns.Mark(t)
	began := time.Now()
	harness.Stop(t, process)
	ended := time.Now()
	if took := harness.AtPace(began, ended.Sub(began)); took > 15*time.Second {
		t.Errorf("the end took %v", took)
	}
	released, _, err := env.Audit.Since(ending, audit.Succeeded(), audit.Writes(), audit.Resource("coordination.k8s.io", "leases"),
		func(e *audit.Event) bool { return e.Name == "freehold" })
	if err != nil || len(released) == 0 {
		t.Fatalf("the lease was not released: %v", err)
	}
	if waited := ended.Sub(released[len(released)-1].Received); waited < 3*time.Second {
		t.Errorf("the lease was released %v before the end; the wait for the collector should come after it", waited)
	}
	if told := strings.Count(log(), "Traces are not delivered"); told > 1 {
		t.Errorf("the log tells of it %d times", told)
	}
}
