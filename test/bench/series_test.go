// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

func TestWhatIsRecorded(t *testing.T) {
	r := good()
	r.NoOperator = stage{Took: time.Minute, Plane: map[cluster.Component]time.Duration{cluster.APIServer: 1500 * time.Millisecond}}
	r.Freehold.Config.Took = 1500 * time.Millisecond
	r.Freehold.Delete.Writes = tally{All: map[string]int{"apply mcpservers": 200}, Refused: 3}
	r.Freehold.Create = append(r.Freehold.Create, stage{
		Use: use{CPU: 3 * time.Second, PeakMiB: 70, ResidentMiB: 60}, Plane: map[cluster.Component]time.Duration{cluster.Etcd: 4 * time.Second},
	})
	path := filepath.Join(t.TempDir(), "recorded.json")
	if err := (&recording.Recording{Machine: recording.Machine{CPUs: 2}, Runs: []recording.Run{r.recorded()}}).Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := recording.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	run := read.Runs[0]
	for what, same := range map[string]bool{
		"number of MCPServers":      run.Servers == 200,
		"milestone, raw":            run.Raw.Milestones[recording.ChildrenExist] == 10,
		"milestone, Freehold":       run.Freehold.Milestones[recording.ServersReady] == 12,
		"milestone, ToolHive":       run.ToolHive.Milestones[recording.ProxiesReady] == 21,
		"children":                  run.Raw.Children == 10 && run.Freehold.Children == 10 && run.ToolHive.Children == len(upstreamChildren),
		"duration":                  run.Freehold.Stages[recording.Config].Took == 1.5,
		"median of CPU time":        run.Freehold.Stages[recording.Create].CPU[recording.Operator] == 2,
		"median of etcd's CPU time": run.Freehold.Stages[recording.Create].CPU[recording.Etcd] == 2,
		"median of peaks":           run.Freehold.Stages[recording.Create].PeakMiB == 60,
		"writes":                    cmp.Equal(run.Freehold.Stages[recording.Delete].Writes, map[string]int{"apply mcpservers": 200}),
		"refused":                   run.Freehold.Stages[recording.Delete].Refused == 3,
		"answers":                   run.Raw.Answers[recording.Image] == recording.Answers{Edits: 50, Named: 50, P50: 0.025, P99: 0.05, Max: 0.05},
		"idle without an operator":  run.Raw.Stages[recording.Idle].CPU[recording.APIServer] == 1.5,
		"foreign labels":            run.Freehold.LabelsLeft == 200,
		"undone":                    run.ToolHive.Answers[recording.Image].Undone == 50,
	} {
		if !same {
			t.Errorf("%s is not recorded: %+v", what, run)
		}
	}
	r.ToolHive = measurements{}
	if r.recorded().ToolHive != nil {
		t.Error("what was left out is recorded")
	}
}

// TestContinue records numbers of MCPServers one after the other, in any order, and one of them again.
func TestContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.json")
	add := func(kernel string, servers int, took float64) {
		t.Helper()
		r, err := recording.Continue(path, recording.Machine{CPUs: 2, Kernel: kernel})
		if err != nil {
			t.Fatal(err)
		}
		r.Add(recording.Run{Servers: servers, Took: took})
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	want := func(numbers ...float64) {
		t.Helper()
		r, err := recording.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, run := range r.Runs {
			got = append(got, float64(run.Servers), run.Took)
		}
		if diff := cmp.Diff(numbers, got); diff != "" {
			t.Errorf("other numbers of MCPServers and times (-want +got):\n%s", diff)
		}
	}
	add("6.1", 300, 3)
	add("6.1", 1000, 10)
	add("6.1", 100, 1)
	want(100, 1, 300, 3, 1000, 10)
	add("6.1", 300, 4)
	want(100, 1, 300, 4, 1000, 10)
	add("6.2", 300, 5)
	want(300, 5)

	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Continue(path, recording.Machine{}); err == nil {
		t.Error("a file that is no recording was about to be overwritten")
	}
}

func TestSizes(t *testing.T) {
	var s sizes
	if err := s.Set("100,300,1000"); err != nil || s.String() != "100,300,1000" {
		t.Errorf("got %v, %v", s, err)
	}
	for _, text := range []string{"", "1,,2", "a", "0", "-1"} {
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestPercentiles(t *testing.T) {
	var times []time.Duration
	for i := 100; i > 0; i-- {
		times = append(times, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 1, 1: 1, 50: 50, 99: 99, 99.5: 100, 100: 100} {
		if got := recording.Percentile(times, p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
	if got := recording.Percentile(nil, 99); got != 0 {
		t.Errorf("that of nothing is %v", got)
	}
}
