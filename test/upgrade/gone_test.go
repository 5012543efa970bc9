// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// withSecondAlpha is a definition that also has v1alpha2, with the schema of v1alpha1.
func withSecondAlpha(versions []any) []any {
	second := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	second["name"] = "v1alpha2"
	return append(versions, second)
}

// unserved is a definition that has its early versions and does not serve them.
func unserved(versions []any) []any {
	for _, v := range versions {
		v := v.(map[string]any)
		v["served"] = !strings.Contains(v["name"].(string), "alpha")
	}
	return versions
}

// applyAs applies an object as one of its versions.
func (s *scene) applyAs(t *testing.T, manager, version, kind, name, spec string) {
	t.Helper()
	s.kubectl.Do(t, harness.Call{
		Args: []string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"},
		Input: fmt.Sprintf(`{"apiVersion": "toolhive.stacklok.dev/%s", "kind": %q, "metadata": {"name": %q}, "spec": %s}`,
			version, kind, name, spec),
	})
}

// object reads an object as KIND/NAME.
func (s *scene) object(t *testing.T, object string) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(s.kubectl.Run(t, "get", object, "-o", "json", "--show-managed-fields")), &found.Object); err != nil {
		t.Fatal(err)
	}
	return found
}

// records are the field managers of an object, each as MANAGER VERSION.
func records(object *unstructured.Unstructured) (found []string) {
	for _, e := range object.GetManagedFields() {
		found = append(found, e.Manager+" "+strings.TrimPrefix(e.APIVersion, "toolhive.stacklok.dev/"))
	}
	return found
}

// recordOursAs records Freehold's own field managers of an object in an early version, as a release does that writes that version.
func (s *scene) recordOursAs(t *testing.T, object, version string) {
	t.Helper()
	live := s.object(t, object)
	entries, count := live.GetManagedFields(), 0
	for i := range entries {
		if managers.ClassOf(entries[i].Manager, "") == managers.ClassFreehold {
			entries[i].APIVersion, count = "toolhive.stacklok.dev/"+version, count+1
		}
	}
	live.SetManagedFields(entries)
	text, err := json.Marshal(live)
	if err != nil || count < 2 {
		t.Fatalf("Freehold has %d records in %v: %v", count, records(live), err)
	}
	s.kubectl.Do(t, harness.Call{Args: []string{"replace", "-f", "-"}, Input: string(text)})
}

// checkRecords checks that an object has no record in an early version, and one of each of the field managers.
func (s *scene) checkRecords(t *testing.T, object string, want ...string) {
	t.Helper()
	found := records(s.object(t, object))
	if slices.ContainsFunc(found, func(record string) bool { return strings.Contains(record, "alpha") }) {
		t.Errorf("%s has a record in a version that is gone: %v", object, found)
	}
	for _, record := range want {
		if !slices.Contains(found, record) {
			t.Errorf("%s has no record %s: %v", object, record, found)
		}
	}
}

// awaitRepaired waits for the event about the repair of an MCPServer, which names the field manager whose record was dropped.
func (s *scene) awaitRepaired(t *testing.T, name, manager string) {
	t.Helper()
	harness.Eventually(t, "an event about the repair of "+name, func(ctx context.Context) error {
		warnings, err := s.Warnings(ctx)
		if err != nil {
			return err
		}
		for _, event := range warnings[name] {
			if event.Reason == v1beta1.EventReasonManagedFieldsRepaired && strings.Contains(event.Note, manager) {
				return nil
			}
		}
		return fmt.Errorf("there is none: %+v", warnings[name])
	})
}

// awaitEnd deletes an object as KIND/NAME, and waits until it is gone.
func (s *scene) awaitEnd(t *testing.T, object string) {
	t.Helper()
	s.kubectl.Run(t, "delete", object, "--wait=false")
	harness.Eventually(t, object+" is gone", func(ctx context.Context) error {
		out, err := s.kubectl.Try(ctx, harness.Call{Args: []string{"get", object, "--ignore-not-found", "-o", "jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers}"}})
		if err == nil && out != "" {
			err = errors.New("it is being deleted since " + out)
		}
		return err
	})
}

// TestVersionsThatAreGone has field managers recorded in versions that the definitions no longer have. The API server then answers each
// apply of such an object, its status and its finalizers with an error, whoever sends it, until all these records are dropped in one
// request. Freehold drops them when it next has something to write, and nothing else: values stay, and so do records in other versions,
// served or not. What it owned itself is its own again.
func TestVersionsThatAreGone(t *testing.T) {
	const (
		author, server = "author-of-beta", `{"image": "example.com/mcp:1", "transport": "streamable-http", "mcpPort": 9000}`
		tools, groups  = "mcptoolconfigs.toolhive.stacklok.dev", "mcpgroups.toolhive.stacklok.dev"
	)
	s := newScene(t, documents.Root)
	s.Expect(t, harness.BrokenConnections, "") // A definition that changes ends the watches of its kind.
	define := func(ctx context.Context, change func(versions []any) []any) {
		t.Helper()
		for _, name := range []string{definition, tools, groups} {
			if err := s.define(ctx, t, name, change); err != nil {
				t.Error(err)
			}
		}
	}
	define(t.Context(), withSecondAlpha)
	t.Cleanup(func() { define(context.WithoutCancel(t.Context()), func(versions []any) []any { return versions }) })
	harness.Eventually(t, "v1alpha2 is served", func(ctx context.Context) error {
		_, err := s.kubectl.Try(ctx, harness.Call{Args: []string{"get", "mcpservers.v1alpha2.toolhive.stacklok.dev"}})
		return err
	})
	p := s.runPresent(t)

	names := []string{"edited", "twice", "ours", "ended", "ours-ended"}
	for _, name := range names {
		s.applyAs(t, oldAuthor, "v1alpha1", "MCPServer", name, server)
		s.applyAs(t, author, "v1beta1", "MCPServer", name, `{"transport": "streamable-http"}`)
		s.AwaitSettled(t, name)
	}
	for _, name := range []string{"twice", "ended"} {
		s.applyAs(t, oldAuthor+"-2", "v1alpha2", "MCPServer", name, `{"mcpPort": 9000}`)
	}
	for _, name := range []string{"edited", "ended"} {
		s.applyAs(t, oldAuthor, "v1alpha1", "MCPToolConfig", name, `{"toolsFilter": ["one"]}`)
		s.applyAs(t, oldAuthor, "v1alpha1", "MCPGroup", name, `{"description": "a group"}`)
	}
	s.rest(t, p)
	for _, object := range []string{"mcpserver/ours", "mcpserver/ours-ended", "mcptoolconfig/ended", "mcpgroup/ended"} {
		s.recordOursAs(t, object, "v1alpha1")
	}

	// A version that is not served stays usable for records.
	define(t.Context(), func(versions []any) []any { return unserved(withSecondAlpha(versions)) })
	s.rest(t, p)
	s.Edit(t, "edited", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 8081 })
	s.AwaitStatus(t, "edited", harness.Fine...)
	if found := records(s.object(t, "mcpserver/edited")); !slices.Contains(found, oldAuthor+" v1alpha1") {
		t.Errorf("the record in a version that is not served is gone: %v", found)
	}

	define(t.Context(), withoutAlpha)
	s.rest(t, p)
	mark := s.Mark(t)
	for _, name := range []string{"edited", "twice", "ours"} {
		s.Edit(t, name, func(server *v1beta1.MCPServer) {
			server.Spec.Image = harness.OtherImage
			server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "edited"}
		})
		after := s.AwaitStatus(t, name, harness.Fine...)
		if after.Spec.MCPPort != 9000 {
			t.Errorf("the port of %s, whose record was dropped, is %d", name, after.Spec.MCPPort)
		}
		s.awaitRepaired(t, name, oldAuthor)
		s.checkRecords(t, "mcpserver/"+name, author+" v1beta1", managers.Finalizer+" v1beta1", managers.Status+" v1beta1")
	}
	before, _, _ := unstructured.NestedString(s.object(t, "mcptoolconfig/edited").Object, "status", "configHash")
	s.kubectl.Run(t, "patch", "mcptoolconfig/edited", "--type=merge", "-p", `{"spec":{"toolsFilter":["two"]}}`)
	harness.Eventually(t, "the status of the configuration follows", func(context.Context) error {
		if hash, _, _ := unstructured.NestedString(s.object(t, "mcptoolconfig/edited").Object, "status", "configHash"); hash == before {
			return errors.New("it still has the hash " + hash)
		}
		return nil
	})
	s.checkRecords(t, "mcptoolconfig/edited", managers.ConfigFinalizer+" v1beta1", managers.ConfigStatus+" v1beta1")
	harness.Eventually(t, "the status of the group lists its members", func(context.Context) error {
		members, _, _ := unstructured.NestedStringSlice(s.object(t, "mcpgroup/edited").Object, "status", "servers")
		if len(members) != 3 {
			return fmt.Errorf("it lists %v", members)
		}
		return nil
	})
	s.checkRecords(t, "mcpgroup/edited", managers.ConfigFinalizer+" v1beta1", managers.GroupStatus+" v1beta1")
	for _, object := range []string{"mcpserver/ended", "mcpserver/ours-ended", "mcptoolconfig/ended", "mcpgroup/ended"} {
		s.awaitEnd(t, object)
	}
	s.rest(t, p)
	failures := map[string]int{}
	for _, e := range s.Writes(t, mark) {
		if e.Code == http.StatusInternalServerError {
			failures[e.Resource+"/"+e.Name]++
		}
	}
	t.Logf("writes that the API server failed to apply: %v", failures)
	for _, name := range []string{"mcpservers/edited", "mcpservers/ours", "mcptoolconfigs/edited", "mcpgroups/edited"} {
		// One shows that a version is gone. Another may come behind if the object changes before it is repaired. Where two versions are
		// gone, there are more: each answer names any one of them.
		if count := failures[name]; count < 1 || count > 3 {
			t.Errorf("%d applies of %s fail", count, name)
		}
	}
}
