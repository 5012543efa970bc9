// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/documents"
)

// The steps, as the table of docs/upgrade.md calls them.
const (
	upgrade  = "upgrade"
	rollback = "rollback"
)

// documented returns what docs/upgrade.md says is written in a step: kind, field manager and field.
func documented(t *testing.T, step string) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(documents.Root, "docs", "upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- BEGIN writes -->\n")
	table, _, found := strings.Cut(table, "<!-- END writes -->")
	lines := slices.Collect(strings.Lines(table))
	if !found || len(lines) < 2 {
		t.Fatal("docs/upgrade.md has no table of what is written")
	}
	for _, line := range lines[2:] {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("a row of the table has %d columns: %s", len(cells), line)
		}
		if slices.Contains(strings.Split(strings.TrimSpace(cells[0]), ", "), step) {
			rows = append(rows, strings.Join([]string{clean(cells[1]), clean(cells[2]), clean(cells[3])}, " "))
		}
	}
	slices.Sort(rows)
	return rows
}

func clean(cell string) string { return strings.Trim(strings.TrimSpace(cell), "`") }

// check compares what a step has done with what it may do: the objects are the same ones, pods above all; those that were written are
// written as the table says; each claim is whose it was. Of the requests, the ones that were refused are those of the standing
// conflicts, each once.
func (s *scene) check(t *testing.T, step string, before snapshot, since audit.Mark) {
	t.Helper()
	after := s.look(t)
	if diff := cmp.Diff(before.pods(), after.pods()); diff != "" {
		t.Errorf("%s: pods were replaced (-before +after):\n%s", step, diff)
	}
	for name, object := range before {
		if now := after[name]; now == nil || now.GetUID() != object.GetUID() {
			t.Errorf("%s: %s is not there any more, or another one", step, name)
		}
	}
	for name := range after {
		if before[name] == nil {
			t.Errorf("%s: %s has come", step, name)
		}
	}
	rows := map[string]bool{}
	managers, refused := map[string][]string{}, map[string]int{}
	for _, e := range s.Writes(t, since) {
		name := e.Resource + "/" + e.Name
		switch {
		case e.Group == "events.k8s.io":
			t.Errorf("%s: an event is told again: %s", step, e.Body)
		case e.Code == http.StatusConflict:
			refused[name+" "+e.FieldManager]++
		case !e.IsApply() || !e.Succeeded():
			t.Errorf("%s: no accepted apply: %v\n%s", step, e, e.Body)
		default:
			managers[name] = append(managers[name], e.FieldManager)
		}
	}
	if diff := cmp.Diff(standing, refused); diff != "" {
		t.Errorf("%s: refused writes (-want +got):\n%s", step, diff)
	}
	for _, name := range before.written(after) {
		if len(managers[name]) != 1 {
			t.Errorf("%s: %s was written by %v", step, name, managers[name])
			continue
		}
		fields := changed(before[name], after[name])
		if len(fields) == 0 {
			t.Errorf("%s: %s was written by %v, and nothing of it has changed", step, name, managers[name])
		}
		for _, field := range fields {
			rows[fmt.Sprintf("%s %s %s", after[name].GetKind(), managers[name][0], field)] = true
		}
		delete(managers, name)
		t.Logf("%s: %s: %v", step, name, fields)
	}
	if len(managers) > 0 {
		t.Errorf("%s: applies that changed nothing: %v", step, managers)
	}
	for name, object := range before {
		if now := after[name]; now != nil {
			if diff := cmp.Diff(owners(t, object), owners(t, now)); diff != "" {
				t.Errorf("%s: claims on %s have changed hands (-before +after):\n%s", step, name, diff)
			}
		}
	}
	got := slices.Sorted(func(yield func(string) bool) {
		for row := range rows {
			if !yield(row) {
				return
			}
		}
	})
	if !s.earlier.Pinned {
		t.Logf("%s: the table is not about this commit; what was written: %v", step, got)
		return
	}
	if diff := cmp.Diff(documented(t, step), got); diff != "" {
		t.Errorf("%s: the table in docs/upgrade.md is another one (-table +written):\n%s", step, diff)
	}
}

// standing are the writes that are refused whenever an operator starts.
var standing = map[string]int{
	"deployments/" + contested + " freehold-proxy": 1, "deployments/" + contestedPods + " freehold-proxy-replicas": 1,
}
