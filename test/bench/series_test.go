// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

func TestARunIsReadAsItWasRecorded(t *testing.T) {
	r := good()
	r.PerNamespace, r.Later = 50, "v0.63.0"
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
		"number of MCPServers":      run.Servers == 200 && run.PerNamespace == 50,
		"release of ToolHive":       run.Later == "v0.63.0",
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

// TestARecordingIsContinuedInAnyOrder records numbers of MCPServers one after the other, in any order, and one of them again.
func TestARecordingIsContinuedInAnyOrder(t *testing.T) {
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

// Runs without ToolHive's operator, and with it, stay beside one another, as long as its release is the same.
func TestRunsWithoutToolHiveStayBesideThoseWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.json")
	for _, step := range []struct {
		release, runs string
		servers       int
	}{
		{"", "100", 100},
		{"v1", "100 300", 300},
		{"", "100 300 1000", 1000},
		{"v1", "100 300 1000 3000", 3000},
		{"v2", "300", 300},
		{"", "300", 300},
		{"v3", "300 500", 500}, // No run is with v2 any more.
	} {
		r, err := recording.Continue(path, recording.Machine{CPUs: 2, ToolHive: step.release})
		if err != nil {
			t.Fatal(err)
		}
		run := recording.Run{Servers: step.servers}
		if step.release != "" {
			run.ToolHive = &recording.Subject{}
			if r.Machine.ToolHive != step.release {
				t.Errorf("the recording is about release %s, want %s", r.Machine.ToolHive, step.release)
			}
		}
		r.Add(run)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, run := range r.Runs {
			runs = append(runs, strconv.Itoa(run.Servers))
		}
		if got := strings.Join(runs, " "); got != step.runs {
			t.Errorf("after a run with %d MCPServers and release %q there are %s, want %s", step.servers, step.release, got, step.runs)
		}
	}
}

// TestARecordingIsReplacedAsAWhole: a reader that has opened it reads what it was, and nothing else is left in the directory.
func TestARecordingIsReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "recorded.json")
	if err := os.WriteFile(path, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&recording.Recording{}).Write(path); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "former" {
		t.Errorf("it reads %q, %v", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the directory has %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if err := os.Mkdir(filepath.Join(dir, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&recording.Recording{}).Write(filepath.Join(dir, "in-the-way")); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("after a failure the directory has %v, %v", entries, err)
	}
}

// What took hours is kept, whatever becomes of the terminal, and written, whatever becomes of the file.
func TestWhatTookHoursIsKept(t *testing.T) {
	to := &series{path: filepath.Join(t.TempDir(), "recorded.json"), commit: "abc", recording: &recording.Recording{}}
	b := &bench{progress: io.Discard}
	closed := errors.New("the terminal is closed")
	if _, err := b.conclude(good(), true, to, thresholdsOf(t), func(*report) error { return closed }); !errors.Is(err, closed) {
		t.Error(err)
	}
	r, err := recording.Read(to.path)
	if err != nil || len(r.Runs) != 1 || r.Runs[0].Commit != "abc" {
		t.Errorf("recorded is %+v, %v", r, err)
	}
	written := false
	to.path = filepath.Join(to.path, "below-a-file")
	_, err = b.conclude(good(), true, to, thresholdsOf(t), func(*report) error { written = true; return nil })
	if err == nil || !written {
		t.Errorf("what cannot be recorded is written: %t, %v", written, err)
	}
	missed, err := b.conclude(good(), true, nil, thresholdsOf(t), func(*report) error { return nil })
	if err != nil || missed != 0 {
		t.Errorf("without a recording %d thresholds are missed, %v", missed, err)
	}
}

// TestARunWithoutItsEndIsRecorded as one that left ToolHive's operator out, but not in place of a whole one.
func TestARunWithoutItsEndIsRecorded(t *testing.T) {
	to := &series{path: filepath.Join(t.TempDir(), "recorded.json"), recording: &recording.Recording{}}
	failed := good()
	failed.Later = "v0.63.0"
	failed.leaveOutToolHive()
	if recorded, err := to.record(failed, false); !recorded || err != nil || to.recording.Runs[0].ToolHive != nil || to.recording.Runs[0].Later != "" {
		t.Errorf("recorded: %v, %v", recorded, err)
	}
	if recorded, err := to.record(good(), true); !recorded || err != nil || to.recording.Runs[0].ToolHive == nil {
		t.Errorf("the whole run is recorded: %v, %v", recorded, err)
	}
	if recorded, err := to.record(failed, false); recorded || err != nil || to.recording.Runs[0].ToolHive == nil {
		t.Errorf("recorded in place of the whole one: %v, %v", recorded, err)
	}
	spread := *failed
	spread.PerNamespace = 20
	if recorded, err := to.record(&spread, false); !recorded || err != nil || len(to.recording.Runs) != 2 {
		t.Errorf("one with other namespaces is recorded: %v, %v", recorded, err)
	}
	if err := failed.judge(thresholdsOf(t)); err != nil {
		t.Error(err)
	}
	if err := failed.table(io.Discard); err != nil {
		t.Error(err)
	}
}

func TestSizesAreNumbersAboveZero(t *testing.T) {
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

func TestAPercentileIsOneOfTheTimes(t *testing.T) {
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
