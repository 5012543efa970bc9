// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// definition is that of MCPServers.
	definition = "mcpservers.toolhive.stacklok.dev"
	// oldAuthor applies MCPServers as v1alpha1.
	oldAuthor = "author-of-alpha"
)

// define applies a definition of Freehold's with changes of its versions, as whoever has installed it.
func (s *scene) define(ctx context.Context, t *testing.T, name string, change func(versions []any) []any) error {
	t.Helper()
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d crd.Definition) bool { return d.Name == name })
	object, err := all[i].Object()
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(object.Object, change(versions), "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.kubectl.Try(ctx, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: string(text)})
	return err
}

// storing is the definition that stores a version.
func storing(version string) func([]any) []any {
	return func(versions []any) []any {
		for _, v := range versions {
			v := v.(map[string]any)
			v["storage"] = v["name"] == version
		}
		return versions
	}
}

// withoutAlpha is the definition of a release that has dropped v1alpha1.
func withoutAlpha(versions []any) (kept []any) {
	for _, v := range versions {
		if v.(map[string]any)["name"] != "v1alpha1" {
			kept = append(kept, v)
		}
	}
	return kept
}

// applyAlpha applies an MCPServer as v1alpha1, and waits until the operator has done all for it.
func (s *scene) applyAlpha(t *testing.T, name string) {
	t.Helper()
	s.kubectl.Do(t, harness.Call{
		Args: []string{"apply", "--server-side", "--field-manager=" + oldAuthor, "-f", "-"},
		Input: `{"apiVersion": "toolhive.stacklok.dev/v1alpha1", "kind": "MCPServer", "metadata": {"name": "` + name + `"},
			"spec": {"image": "example.com/mcp:1", "transport": "streamable-http", "mcpPort": 9000}}`,
	})
	s.AwaitSettled(t, name)
	s.AwaitCalm(t, name)
}

// TestStorageVersions has MCPServers that were stored as v1alpha1, as an early ToolHive did, and gets rid of that version as
// docs/upgrade.md says. The API server refuses to forget a version in which something may be stored, so nobody has to hurry; the operator has
// nothing to write for any of it, and works on when v1alpha1 is gone. Where a field manager still is in managedFields with that version then,
// the API server answers each apply with an error. The same command, typed once more, changes the version, and the field manager keeps what it
// owns. Where the operator has something to write before that, it drops the record.
func TestStorageVersions(t *testing.T) {
	const web, late, edited = "web", "late", "edited"
	s := newScene(t, documents.Root)
	s.Expect(t, harness.BrokenConnections, "") // A definition that changes ends the watches of its kind.
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.define(t.Context(), t, definition, storing("v1alpha1")))
	t.Cleanup(func() {
		if err := s.define(context.WithoutCancel(t.Context()), t, definition, storing("v1beta1")); err != nil {
			t.Error(err)
		}
	})
	p := s.runPresent(t)
	s.applyAlpha(t, web)
	must(s.define(t.Context(), t, definition, storing("v1beta1")))
	s.rest(t, p)
	if err := s.define(t.Context(), t, definition, withoutAlpha); err == nil || !strings.Contains(err.Error(), "status.storedVersions") || !strings.Contains(err.Error(), "v1alpha1") {
		t.Fatalf("a definition without v1alpha1: %v", err)
	}

	before, mark := s.look(t), s.Mark(t)
	var migrate documents.Command
	for _, command := range documents.Of(t) {
		out := s.types(t, command)
		switch {
		case strings.Contains(command.Text, "custom-columns"):
			if !strings.Contains(out, "[v1beta1 v1alpha1]") && !strings.Contains(out, "[v1alpha1 v1beta1]") {
				t.Errorf("%v shows\n%s", command, out)
			}
		case strings.Contains(command.Text, "kubectl replace"):
			migrate = command
			s.checkMigrated(t, command, before)
		}
	}
	s.applyAlpha(t, late)
	s.applyAlpha(t, edited)
	must(s.define(t.Context(), t, definition, withoutAlpha))
	s.rest(t, p)
	for _, e := range s.Writes(t, mark) {
		if e.Resource == "mcpservers" && e.Name == web {
			t.Errorf("the operator has written %v\n%s", e, e.Body)
		}
	}

	for _, name := range []string{web, edited} {
		s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
		s.AwaitStatus(t, name, harness.Fine...)
	}
	s.AwaitWrites(t, mark, "the API server fails to apply what v1alpha1 is left in", func(events []*audit.Event) bool {
		return slices.ContainsFunc(events, func(e *audit.Event) bool { return e.Name == edited && e.Code == http.StatusInternalServerError })
	})
	s.awaitRepaired(t, edited, oldAuthor)
	s.types(t, migrate)
	s.checkAuthors(t, web, late)
}

// checkMigrated checks that a migration has written each MCPServer, that nothing shows it but the version that its author is told with, and
// that the next one writes nothing.
func (s *scene) checkMigrated(t *testing.T, command documents.Command, before snapshot) {
	t.Helper()
	const web = "mcpservers/web"
	after := s.look(t)
	if diff := cmp.Diff([]string{web}, before.written(after)); diff != "" {
		t.Errorf("%v writes (-want +got):\n%s", command, diff)
	}
	if fields := changed(before[web], after[web]); len(fields) > 0 {
		t.Errorf("%v changes %v", command, fields)
	}
	want := map[string][]string{}
	for owner, fields := range owners(t, before[web]) {
		want[strings.Replace(owner, "/v1alpha1", "/v1beta1", 1)] = fields
	}
	if diff := cmp.Diff(want, owners(t, after[web])); diff != "" {
		t.Errorf("%v changes owners (-want +got):\n%s", command, diff)
	}
	s.types(t, command)
	if names := after.written(s.look(t)); len(names) > 0 {
		t.Errorf("%v writes %v again", command, names)
	}
}

// checkAuthors checks that who has applied MCPServers as v1alpha1 owns what they have applied, and that it goes when they apply without it.
func (s *scene) checkAuthors(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		managed := s.kubectl.Run(t, "get", "mcpserver", name, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager} {.metadata.managedFields[*].apiVersion}")
		if !strings.Contains(managed, oldAuthor) || strings.Contains(managed, "v1alpha1") {
			t.Errorf("MCPServer %s is managed by %s", name, managed)
		}
		s.kubectl.Do(t, harness.Call{
			Args: []string{"apply", "--server-side", "--field-manager=" + oldAuthor, "-f", "-"},
			Input: `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "` + name + `"},
				"spec": {"image": "` + harness.OtherImage + `", "transport": "streamable-http"}}`,
		})
		if port := s.kubectl.Run(t, "get", "mcpserver", name, "-o", "jsonpath={.spec.mcpPort}"); port == "9000" {
			t.Errorf("MCPServer %s has a port that its author does not apply any more", name)
		}
	}
}
