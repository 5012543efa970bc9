// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/internal/history"
)

var update = flag.Bool("update", false, "write the histories that are replayed on a real API server")

// historiesDir has a file for each history that TestReplay of ../cluster/faults replays.
const historiesDir = "testdata/histories"

// recordedSeed is that of all histories that are recorded.
const recordedSeed = 1

// record plays a scenario in a namespace of its own, and lets the cluster come to rest after each act.
func record(t *testing.T, sc scenario, name string) *history.History {
	t.Helper()
	h := &history.History{Namespace: "history-" + name}
	Run(t, recordedSeed, func(s *Simulation) {
		s.Namespace, s.history = h.Namespace, h
		addNamespace(s.t, s.Server, s.Namespace)
		s.oracle.mayTake = func(manager string) bool { return slices.Contains(sc.mayTake, manager) }
		s.Start()
		if sc.before != nil {
			sc.before(s)
		}
		sc.act(s)
		s.oracle.report()
	})
	return h
}

// recordedStories are stories without trouble, in which nothing happens that a client of a real API server cannot ask for.
func recordedStories() (told []scenario) {
	possible := slices.DeleteFunc(slices.Clone(acts), func(a act) bool {
		return slices.Contains([]string{"restore", "version leaves", "strip owners", "second operator", "restart operator", "grow too large", "shrink"}, a.name)
	})
	for n := range uint64(8) {
		told = append(told, scenario{name: fmt.Sprint("story ", n+1), act: func(sim *Simulation) {
			s := newStory(sim, n)
			s.createServer("web", nil)
			for len(s.history.Acts) < 12 {
				possible[s.random.IntN(len(possible))].do(s)
			}
		}})
	}
	return told
}

// TestHistories: the histories that are replayed on a real API server are those of the scenarios, and some stories, as they are
// played now. The flag -update writes them.
func TestHistories(t *testing.T) {
	recorded, err := history.Read(historiesDir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, sc := range append(scenarios(), recordedStories()...) {
		name := strings.ReplaceAll(sc.name, " ", "-")
		names[name] = true
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			played := record(t, sc, name)
			if *update {
				if err := played.Write(filepath.Join(historiesDir, name+".json")); err != nil {
					t.Fatal(err)
				}
				return
			}
			if recorded[name] == nil {
				t.Fatal("it is not recorded; run with -update")
			}
			want, err := recorded[name].JSON()
			if err != nil {
				t.Fatal(err)
			}
			got, err := played.JSON()
			if err != nil {
				t.Fatal(err)
			}
			// Nothing is decided from the words of a status: with others a history is the same but for these.
			if got = []byte(asWritten.Replace(string(got))); !bytes.Equal(want, got) {
				t.Errorf("the record is another one; run with -update (-recorded +played):\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
	for name := range recorded {
		if !names[name] {
			t.Errorf("%s is the history of no scenario", name)
		}
	}
}
