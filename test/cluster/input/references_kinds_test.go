// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// definition is that of the kind that is not installed.
	definition = "mcptoolconfigs." + toolhive.GroupName
	// idle is how long requests are counted. What client-go asks for again it has asked for several times by then.
	idle = 20 * time.Second
	// prompt is how long an MCPServer may take after what it refers to is there. The operator lists a kind that is not served once a
	// minute at least.
	prompt = 90 * time.Second
)

// TestKindInstalledLater runs an operator where one kind that MCPServers refer to is not installed, nor any that it only counts.
// What needs no object of the kind works, and what does is told of the definition. These kinds are listed less and less often. Once
// the definition is there, so is the kind, for the same operator; and again, after it has been deleted.
func TestKindInstalledLater(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := scene{harness.NewForTest(t).Namespace(t)}
	beginning := s.Mark(t)
	install := uninstall(t, s.Env, definition)
	s.Operate(t, ours)
	s.publish(t, issuer(address(1)))
	filtered := func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: shared} }
	s.settled(t, harness.HTTPServer("plain"), harness.HTTPServer(web, authenticated))
	s.Create(t, harness.HTTPServer("filtered", authenticated, filtered))
	tools := func(status metav1.ConditionStatus, reason string, message ...string) harness.Expectation {
		return harness.Expectation{Condition: v1beta1.ConditionToolConfigRefValidated, Status: status, Reason: reason, Message: message}
	}
	s.AwaitStatus(t, "filtered", notReady, usable,
		tools(metav1.ConditionFalse, v1beta1.ReasonToolConfigRefNotFound, "CustomResourceDefinition of MCPToolConfig", noneIsMade))
	s.Edit(t, web, filtered)
	s.AwaitStatus(t, web, notReady, usable,
		tools(metav1.ConditionFalse, v1beta1.ReasonToolConfigRefNotFound, "CustomResourceDefinition of MCPToolConfig", goesOn))
	for _, name := range []string{"filtered", web} {
		s.AwaitServer(t, name, "is Failed", isFailed)
	}
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), idle)
	s.checkUnserved(t, beginning, definition, "virtualmcpservers."+toolhive.GroupName, "mcpremoteproxies."+toolhive.GroupName, "mcpserverentries."+toolhive.GroupName)

	becomesUsable := func() {
		t.Helper()
		install()
		harness.Eventually(t, "the kind is served", func(ctx context.Context) error {
			_, err := s.Env.Servers.ToolhiveV1beta1().MCPToolConfigs(s.Name).Create(ctx, &v1beta1.MCPToolConfig{
				ObjectMeta: metav1.ObjectMeta{Name: shared}, Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"only-this"}},
			}, metav1.CreateOptions{FieldManager: harness.Author})
			return err
		})
		began := time.Now()
		for _, name := range []string{"filtered", web} {
			s.AwaitStatus(t, name, usable, tools(metav1.ConditionTrue, v1beta1.ReasonToolConfigRefValid))
		}
		took := harness.AtPace(began, harness.Since(began))
		t.Logf("usable %v after it was made", took)
		if took > prompt {
			t.Errorf("usable %v after it was made, want at most %v", took, prompt)
		}
		for _, name := range []string{"filtered", web} {
			s.AwaitStatus(t, name, harness.Fine...)
			s.awaitDocument(t, name, "only-this")
		}
	}
	becomesUsable()

	// What is referred to would keep the definition from going.
	for _, name := range []string{"filtered", web} {
		s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = nil })
	}
	deletion := s.Mark(t)
	install = uninstall(t, s.Env, definition)
	for _, name := range []string{"filtered", web} {
		s.Edit(t, name, filtered)
		s.AwaitStatus(t, name, notReady, tools(metav1.ConditionFalse, v1beta1.ReasonToolConfigRefNotFound, "does not exist in the namespace"))
		s.AwaitServer(t, name, "is Failed", isFailed)
	}
	s.AwaitOperatorRest(t)
	s.Quiet(t, s.Mark(t), idle)
	s.checkUnserved(t, deletion, definition)
	becomesUsable()
}

// checkUnserved looks at what operators have asked for in vain since the mark: each of the kinds was listed, after waits that grow.
func (s scene) checkUnserved(t *testing.T, since audit.Mark, definitions ...string) {
	t.Helper()
	events, _, err := s.Audit.Since(since, audit.User(harness.OperatorUser), audit.Verb("list", "watch"))
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]time.Time{}
	for _, e := range events {
		if e.Code == http.StatusNotFound {
			lists[e.Resource+"."+e.Group] = append(lists[e.Resource+"."+e.Group], e.Received)
		}
	}
	for _, name := range definitions {
		at := lists[name]
		if len(at) == 0 {
			t.Errorf("%s was not listed", name)
			continue
		}
		// After waits of 1, 2, 4 s and so on, up to a minute. An informer tries a watch first, and then a list.
		lasted := at[len(at)-1].Sub(at[0])
		if most := 2 * (8 + int(lasted/(45*time.Second))); len(at) > most {
			t.Errorf("%s was listed %d times within %v, want %d at most", name, len(at), lasted, most)
		}
	}
}

// uninstall takes a definition away, and returns what brings it back.
func uninstall(t *testing.T, from *harness.Env, name string) (install func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(from.Config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	found, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := definitions.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the definition is gone", func(ctx context.Context) error {
		_, err := definitions.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return errors.New("it is there")
		}
		return err
	})
	return func() {
		t.Helper()
		again := &unstructured.Unstructured{Object: map[string]any{"spec": found.Object["spec"]}}
		again.SetGroupVersionKind(found.GroupVersionKind())
		again.SetName(name)
		if _, err := definitions.Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
