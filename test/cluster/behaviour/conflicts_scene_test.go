// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// replicasPath is the one field of a workload that has a writer of its own.
	replicasPath  = ".spec.replicas"
	gracePath     = ".spec.template.spec.terminationGracePeriodSeconds"
	componentPath = ".metadata.labels.toolhive.stacklok.io/component"
	imagePath     = `.spec.template.spec.containers[name="toolhive"].image`
)

// scene is where another writer writes: an object of an MCPServer that nobody else writes to.
type scene struct {
	*harness.Namespace
	kubectl   *harness.Kubectl
	server    string
	component harness.Component
	// before is the object as it was.
	before *unstructured.Unstructured
}

// step is something that is done in a scene.
type step func(t *testing.T, s *scene)

// object is the scene's object as kubectl names it.
func (s *scene) object() string {
	form := harness.FormOf(s.component)
	kind := strings.ToLower(form.Kind.Kind)
	if form.Kind.Group != "" {
		kind += "." + form.Kind.Group
	}
	return kind + "/" + s.before.GetName()
}

// runs is kubectl with arguments. In each of them OBJECT stands for the scene's object.
func runs(args ...string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.kubectl.Run(t, s.addressed(args)...)
	}
}

func (s *scene) addressed(args []string) []string {
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "OBJECT", s.object())
	}
	return args
}

// asks makes the MCPServer ask for something else.
func asks(changes ...harness.Change) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.Edit(t, s.server, func(server *v1beta1.MCPServer) {
			for _, change := range changes {
				change(server)
			}
		})
	}
}

// awaitSilence waits until operators have written nothing in the namespace for a while.
func awaitSilence(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	some := func(events []*audit.Event) bool { return len(events) > 0 }
	for mark := ns.Mark(t); ; {
		ctx, cancel := context.WithTimeout(t.Context(), harness.Calm)
		_, end, err := ns.Audit.WaitFor(ctx, mark, some, audit.Writes(), ns.ByOperator())
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && t.Context().Err() == nil:
			return
		case err != nil:
			t.Fatal(err)
		}
		mark = end
	}
}

// image asks for another MCP server.
func image(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:2" }

// scaled asks for numbers of pods, and for what a server with several needs.
func scaled(proxy, backend int32) harness.Change {
	return func(server *v1beta1.MCPServer) {
		harness.Replicas(proxy, backend)(server)
		server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	}
}

// wanted is the value that a field should have, by the one that it had, and judged by the one that it has.
type wanted func(before, now any) any

// becomes is another value.
func becomes(value any) wanted { return func(any, any) any { return value } }

// unchanged is the value that the field had before.
func unchanged(before, _ any) any { return before }

// anything is a value where there was none.
func anything(_, now any) any {
	if now == nil {
		return "anything"
	}
	return now
}

// await waits until a field stands as it should.
func (s *scene) await(t *testing.T, path string, want *standings) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s of %s stands as it should", path, s.object()), func(ctx context.Context) error {
		object, err := s.Object(ctx, s.component, s.server)
		if err != nil {
			return err
		}
		now := harness.ValueAt(object.Object, path)
		if diff := gocmp.Diff(want.value(harness.ValueAt(s.before.Object, path), now), now); diff != "" {
			return fmt.Errorf("it has another value (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(want.owners, harness.OwnersAt(object, path)); diff != "" {
			return fmt.Errorf("it has other owners (-want +got):\n%s", diff)
		}
		return nil
	})
}

// holder is one of these owners as a condition names it.
func holder(owner string) string {
	parts := strings.Fields(owner)
	if len(parts) == 3 {
		return fmt.Sprintf("%q with subresource %q", parts[0], parts[2])
	}
	return fmt.Sprintf("%q", parts[0])
}
