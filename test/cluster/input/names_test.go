// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// The longest names that can work: with an HTTP transport that of the Service mcp-<name>-headless decides, with stdio
// the label that a StatefulSet's revisions get.
const (
	longestHTTPName  = 50
	longestStdioName = 52
)

// TestUnusableNames creates MCPServers whose names cannot work, beside some whose names just can.
func TestUnusableNames(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	stdio := func(name string) *v1beta1.MCPServer { return harness.Server(name, v1beta1.TransportStdio) }
	refused := map[string]struct {
		server  *v1beta1.MCPServer
		message []string
	}{
		"that of all proxies":   {harness.HTTPServer("mcpserver"), []string{`"mcpserver"`, "app=mcpserver"}},
		"dots":                  {harness.HTTPServer("with.dots"), []string{`"with.dots"`, `"mcp-with.dots-headless"`}},
		"dots, stdio":           {stdio("dotted.stdio"), []string{`"dotted.stdio"`, `"mcp-dotted.stdio-proxy"`}},
		"long for a Service":    {harness.HTTPServer(x(longestHTTPName + 1)), []string{"mcp-" + x(longestHTTPName+1), "63"}},
		"long for its revision": {stdio(x(longestStdioName + 1)), []string{fmt.Sprintf("longer than %d", longestStdioName)}},
	}
	usable := []*v1beta1.MCPServer{
		harness.HTTPServer("y" + x(longestHTTPName-1)), stdio("y" + x(longestStdioName-1)), harness.HTTPServer("1st"),
	}
	for _, c := range refused {
		s.Create(t, c.server)
	}
	for _, server := range usable {
		s.Create(t, server)
	}
	for _, server := range usable {
		s.AwaitStatus(t, server.Name, harness.Fine...)
		s.AwaitSettled(t, server.Name)
	}
	for what, c := range refused {
		t.Run(what, func(t *testing.T) {
			expect := invalidSpec("InvalidName", c.message...)
			s.AwaitStatus(t, c.server.Name, expect)
			s.AwaitOneWarning(t, c.server.Name, expect)
		})
	}
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	children := s.ChildVersions(t)
	for what, c := range refused {
		if got := children[c.server.Name]; len(got) > 0 {
			t.Errorf("%s: there are the children %v", what, got.Components())
		}
	}

	// What cannot be renamed can be changed otherwise, or be deleted.
	tooLong := x(longestHTTPName + 1)
	s.Edit(t, tooLong, func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
	s.AwaitStatus(t, tooLong, harness.Fine...)
	for _, name := range []string{"mcpserver", "with.dots", tooLong} {
		s.Delete(t, name, metav1.DeletePropagationBackground)
		s.AwaitGone(t, name)
		s.awaitNoChildren(t, name)
	}
}

// awaitNoChildren waits until the garbage collector has done its work.
func (s *stage) awaitNoChildren(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, "the end of the children of "+name, func(ctx context.Context) error {
		left, err := s.ObjectsOf(ctx, name)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %v", slices.Sorted(maps.Keys(left)))
		}
		return err
	})
}

// TestWithoutSpec creates an MCPServer without a spec, which the definition admits, completes it, and takes the spec
// away again.
func TestWithoutSpec(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	servers := s.Objects(harness.ServerItself)
	bare := mcpServer(t, "v1beta1", "{}")
	unstructured.RemoveNestedField(bare.Object, "spec")
	bare, err := servers.Create(t.Context(), bare, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	if _, found := bare.Object["spec"]; found {
		t.Fatalf("there is a spec: %v", bare.Object["spec"])
	}
	expect := invalidSpec("InvalidImage", "spec.image is missing")
	s.AwaitStatus(t, bare.GetName(), expect)
	s.AwaitOneWarning(t, bare.GetName(), expect)
	s.CheckUnchanged(t, bare.GetName(), nil)

	s.Edit(t, bare.GetName(), func(server *v1beta1.MCPServer) { server.Spec = harness.HTTPServer("").Spec })
	s.AwaitStatus(t, bare.GetName(), harness.Fine...)
	s.AwaitSettled(t, bare.GetName())
	s.AwaitRest(t)
	good := s.ChildVersions(t)[bare.GetName()]
	if diff := cmp.Diff(slices.Sorted(slices.Values(harness.HTTPComponents())), good.Components()); diff != "" {
		t.Errorf("there are other children (-want +got):\n%s", diff)
	}

	s.MustPatch(t, harness.Author, harness.ServerItself, bare.GetName(), harness.Remove("/spec"))
	s.AwaitStatus(t, bare.GetName(), expect)
	s.CheckUnchanged(t, bare.GetName(), good)
}
