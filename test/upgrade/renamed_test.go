// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// suffix is what the names of all writers have in the other release.
const suffix = "-2"

var writerName = regexp.MustCompile(`(?m)^(\t[A-Za-z]+ += )"(freehold-[a-z-]+)"$`)

// buildRenamed builds the operator of a release in which every writer has another name, and knows its former one. The editor of
// managedFields, which owns nothing, keeps its name.
func buildRenamed(t *testing.T) (binary string) {
	t.Helper()
	root, err := filepath.Abs(documents.Root)
	if err != nil {
		t.Fatal(err)
	}
	dir, sources := t.TempDir(), filepath.Join(root, "pkg", "fieldmanager", "managers")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var former strings.Builder
	names := writerName.ReplaceAllStringFunc(read("managers.go"), func(line string) string {
		part := writerName.FindStringSubmatch(line)
		if part[2] == managers.Ownership {
			return line
		}
		fmt.Fprintf(&former, "%q: {%q}, ", part[2]+suffix, part[2])
		return part[1] + `"` + part[2] + suffix + `"`
	})
	const none = "var former = map[string][]string{}"
	table := strings.Replace(read("renamed.go"), none, "var former = map[string][]string{"+former.String()+"}", 1)
	if former.Len() == 0 || !strings.Contains(table, suffix) {
		t.Fatalf("nothing was renamed: %s", former.String())
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{"managers.go": names, "renamed.go": table} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(sources, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "freehold")
	if err := operator.Build(t.Context(), binary, "-overlay="+file); err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestRenamedWriters goes to a release in which every writer has another name, and back, and forth. All claims pass to the new names, by
// edits of managedFields alone: nothing is applied but what names a writer, no value changes, no pod is replaced, conflicts stand as
// before, and the old names are nowhere any more. On the way back the operator, which does not know the newer names, takes its claims back as lost ones.
func TestRenamedWriters(t *testing.T) {
	harness.Long(t)
	other := buildRenamed(t)
	s := newScene(t, documents.Root)
	s.Expect(t, harness.OtherNames, s.Name)
	p := s.runPresent(t)
	s.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(documents.Root, "deploy", "samples", "scenarios", "authentication.yaml"),
		"-f", filepath.Join(documents.Root, "deploy", "samples", "scenarios", "group.yaml"))
	for _, server := range []*v1beta1.MCPServer{
		harness.ServerWithAllChildren(pair), harness.Server(lone, v1beta1.TransportStdio), harness.HTTPServer(contested), harness.HTTPServer(scaled),
	} {
		s.Create(t, server)
	}
	for _, name := range []string{pair, lone, contested, scaled, "echo-authenticated", "echo-in-group"} {
		s.AwaitSettled(t, name)
	}
	s.kubectl.Run(t, "scale", "deployment/"+scaled, "--replicas=2")
	s.kubectl.Run(t, "label", "deployment/"+contested, "--overwrite", "--field-manager=kubectl-edit", label+"=mine")
	s.expectConflict(t, contested)
	s.AwaitSettled(t, scaled)
	s.rest(t, p)

	before := s.look(t)
	claims := s.claims(t, before)
	for round := range 3 {
		mark := s.Mark(t)
		harness.Stop(t, p)
		if !back(round) {
			p, _ = s.OtherOperator(t, other, s.flags()...)
		} else {
			p = s.runPresent(t)
		}
		s.rest(t, p)
		after := s.look(t)
		if diff := cmp.Diff(before.pods(), after.pods()); diff != "" {
			t.Errorf("round %d: pods were replaced (-before +after):\n%s", round, diff)
		}
		for _, name := range before.written(after) {
			fields := changed(before[name], after[name])
			if name == "mcpservers/"+contested {
				// What tells of the conflict names the writer.
				fields = slices.DeleteFunc(fields, func(field string) bool { return strings.HasSuffix(field, ".message") })
			}
			if len(fields) > 0 {
				t.Errorf("round %d: %v of %s have changed", round, fields, name)
			}
		}
		if diff := cmp.Diff(claims, s.claims(t, after)); diff != "" {
			t.Errorf("round %d: who owns what, whatever the names (-before +after):\n%s", round, diff)
		}
		s.checkNames(t, round, after)
		s.checkEdited(t, round, mark)
	}
}

// back reports whether a round goes back to the release with the older names.
func back(round int) bool { return round%2 == 1 }

// configStatus are the writers of a status of which the operator cannot tell that it was written by a release that it does not know:
// nothing there marks it as Freehold's.
var configStatus = []string{managers.ConfigStatus, managers.GroupStatus}

// claims are who owns what of each object, with the names that the writers have in this release.
func (s *scene) claims(t *testing.T, seen snapshot) map[string]map[string][]string {
	t.Helper()
	found := map[string]map[string][]string{}
	for name, object := range seen {
		found[name] = map[string][]string{}
		for owner, fields := range owners(t, object) {
			manager, rest, _ := strings.Cut(owner, " ")
			owner = strings.TrimSuffix(manager, suffix) + " " + rest
			// Two names may own the same, see configStatus.
			found[name][owner] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(found[name][owner], fields))))
		}
	}
	return found
}

// checkNames checks that all of Freehold's claims have the names of one release.
func (s *scene) checkNames(t *testing.T, round int, seen snapshot) {
	t.Helper()
	registry, count := managers.Registry(), 0
	for name, object := range seen {
		for _, entry := range object.GetManagedFields() {
			manager, renamed := strings.CutSuffix(entry.Manager, suffix)
			if !registry.Knows(manager) {
				continue
			}
			count++
			if renamed == back(round) && (!back(round) || !slices.Contains(configStatus, manager)) {
				t.Errorf("round %d: %s is held by %s", round, name, entry.Manager)
			}
		}
	}
	if count == 0 {
		t.Errorf("round %d: Freehold owns nothing", round)
	}
}

// checkEdited checks that only ownership was written, and that the conflict was tried once.
func (s *scene) checkEdited(t *testing.T, round int, since audit.Mark) {
	t.Helper()
	edits, refused := 0, 0
	for _, e := range s.Writes(t, since) {
		switch {
		case e.Group == "events.k8s.io": // On the way back claims count as lost. What tells of the conflict names the writer.
			if !back(round) && !strings.Contains(string(e.Body), `"reason":"FieldManagerConflict"`) {
				t.Errorf("round %d: an event: %s", round, e.Body)
			}
		case e.IsApply() && !e.Succeeded():
			refused++
		case e.Name == contested && e.Subresource == "status":
		case back(round) && slices.Contains(configStatus, e.FieldManager):
		case e.IsApply():
			t.Errorf("round %d: an apply: %v\n%s", round, e, e.Body)
		default:
			edits++
		}
	}
	t.Logf("round %d: %d edits of managedFields", round, edits)
	if edits == 0 || refused != 1 {
		t.Errorf("round %d: %d edits, %d refused applies", round, edits, refused)
	}
}
