// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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
	page, err := os.ReadFile(filepath.Join(documents.Root, "docs", "upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- BEGIN writes -->\n")
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

// text is that of a condition. A release may word any of them otherwise; which is not listed.
var text = regexp.MustCompile(`\[[A-Za-z]+\]\.message$`)

// writerOf returns which of the field managers that have written an object owned a field of it, before or after; a dash for a field that
// none of several owned.
func writerOf(field string, managers []string, states ...*unstructured.Unstructured) string {
	if len(managers) == 1 {
		return managers[0]
	}
	for _, state := range states {
		for _, entry := range state.GetManagedFields() {
			if entry.FieldsV1 == nil || !slices.Contains(managers, entry.Manager) {
				continue
			}
			for key := field; key != ""; _, key, _ = strings.Cut(key, ".") {
				if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+key+`"`) {
					return entry.Manager
				}
			}
		}
	}
	return "–"
}

// digest ends the name of a ConfigMap.
var digest = regexp.MustCompile(`-[0-9a-f]{16}$`)

func clean(cell string) string { return strings.Trim(strings.TrimSpace(cell), "`") }

// check compares what a step has done with what it may do: the objects are the same ones, pods above all; those that were written are
// written as the table says; each claim is whose it was. Of the requests, the ones that were refused are those of the standing
// conflicts, each once by the release that the step leads to, and at most once by the other one, of which a second replica may have
// the lease for a moment.
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
	managers, told := map[string][]string{}, map[string][]string{}
	refused, last := map[string]map[string]int{}, ""
	for _, e := range s.Writes(t, since) {
		name := e.Resource + "/" + e.Name
		switch {
		case e.Group == "events.k8s.io":
			var event eventsv1.Event
			if err := json.Unmarshal(e.Body, &event); err != nil {
				t.Fatal(err)
			}
			told[event.Regarding.Name] = append(told[event.Regarding.Name], event.Reason+": "+event.Note)
		case e.Code == http.StatusConflict:
			last, _, _ = strings.Cut(e.UserAgent, " ") // The release; the field manager follows.
			if refused[last] == nil {
				refused[last] = map[string]int{}
			}
			refused[last][name+" "+e.FieldManager]++
		case !e.IsApply() || !e.Succeeded():
			t.Errorf("%s: no accepted apply: %v\n%s", step, e, e.Body)
		default:
			managers[name] = append(managers[name], e.FieldManager)
		}
	}
	if diff := cmp.Diff(standing, refused[last]); diff != "" {
		t.Errorf("%s: refused writes (-want +got):\n%s", step, diff)
	}
	for release, count := range refused {
		for write, n := range count {
			if n > standing[write] {
				t.Errorf("%s: %s was refused %s %d times", step, release, write, n)
			}
		}
	}
	for _, name := range before.written(after) {
		if strings.HasPrefix(name, "replicasets/") && len(managers[name]) == 0 {
			continue // The Deployment controller copies the annotations of a Deployment to its ReplicaSet.
		}
		if slices.Sort(managers[name]); len(managers[name]) == 0 || len(slices.Compact(slices.Clone(managers[name]))) < len(managers[name]) {
			t.Errorf("%s: %s was written by %v, and each writes once", step, name, managers[name])
			continue
		}
		fields := changed(before[name], after[name])
		if len(fields) == 0 {
			t.Errorf("%s: %s was written by %v, and nothing of it has changed", step, name, managers[name])
		}
		for _, field := range fields {
			if field == "metadata.annotations."+v1beta1.AnnotationReferences {
				continue // It is renewed with whatever else is written.
			}
			rows[fmt.Sprintf("%s %s %s", after[name].GetKind(), writerOf(field, managers[name], before[name], after[name]), text.ReplaceAllString(field, "[*].message"))] = true
			if field == "status.conditions["+v1beta1.ConditionFieldsOwned+"].message" {
				delete(told, after[name].GetName()) // The conflict is told again, in the new words.
			}
		}
		delete(managers, name)
	}
	if len(told) > 0 {
		t.Errorf("%s: events are told again: %v", step, told)
	}
	if len(managers) > 0 {
		t.Errorf("%s: applies that changed nothing: %v", step, managers)
	}
	for name, object := range before {
		if now := after[name]; now != nil {
			written := changed(object, now) // The release that does not know a field does not own it.
			if diff := cmp.Diff(owners(t, object, written...), owners(t, now, written...)); diff != "" {
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
	t.Logf("%s: %d objects, of which %d were written", step, len(before), len(before.written(after)))
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
