// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

func sample() *recording.Recording {
	subject := func(seconds float64, writes map[string]int) recording.Subject {
		s := recording.Subject{
			Milestones: map[string]float64{recording.ChildrenExist: seconds, recording.ServersReady: 2 * seconds},
			Stages:     map[string]recording.Stage{},
			Answers:    map[string]recording.Answers{recording.Image: {Edits: 50, Named: 50, P50: seconds / 10, P99: seconds / 5}},
		}
		for _, name := range []string{recording.Create, recording.Idle, recording.Config, recording.Restart, recording.Delete} {
			used := map[string]float64{recording.Operator: seconds / 2, recording.ControllerManager: 7}
			s.Stages[name] = recording.Stage{Took: seconds, CPU: used, PeakMiB: 80, SettledMiB: 70, Writes: writes}
		}
		return s
	}
	r := &recording.Recording{Machine: recording.Machine{CPUs: 2, CPUModel: "Some <CPU>", MemoryMiB: 4096, ToolHive: "v0.0.1"}}
	for _, n := range []int{100, 300} {
		theirs := subject(4*float64(n)/100, map[string]int{"update deployments": 2 * n})
		r.Runs = append(r.Runs, recording.Run{
			Servers: n, Rounds: 3, Workers: 8, Raw: recording.Subject{Milestones: map[string]float64{recording.ChildrenExist: float64(n) / 100}},
			Freehold: subject(2*float64(n)/100, map[string]int{"apply deployments": n}), ToolHive: &theirs,
		})
	}
	return r
}

func TestTablesCompare(t *testing.T) {
	got := tables(sample())["times"]
	want := `| | raw applier, 100 | Freehold, 100 | ToolHive's operator, 100 | raw applier, 300 | Freehold, 300 | ToolHive's operator, 300 |
|---|---:|---:|---:|---:|---:|---:|
| seconds until all children exist | 1 | 2 | 4 | 3 | 6 | 12 |
| seconds until all proxies are ready | | | | | | |
| seconds until all MCPServers are Ready | | 4 | 8 | | 12 | 24 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWasLeftOutHasNoColumn(t *testing.T) {
	r := sample()
	r.Runs[0].ToolHive = nil
	if got := tables(r)["memory"]; !strings.HasPrefix(got, "| | Freehold, 100 | Freehold, 300 | ToolHive's operator, 300 |\n|---|---:|---:|---:|\n") {
		t.Errorf("got:\n%s", got)
	}
	r.Runs[1].ToolHive = nil
	for name, text := range tables(r) {
		if name != "machine" && strings.Contains(text, toolHive) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// The tables show the smallest run, and the largest that did not leave ToolHive's operator out.
func TestTablesShowTheRunsThatCompare(t *testing.T) {
	r := sample()
	want := tables(r)["memory"]
	between, more := r.Runs[1], r.Runs[1]
	between.Servers = 200
	more.Servers, more.ToolHive = 600, nil
	r.Add(between)
	r.Add(more)
	if diff := cmp.Diff(want, tables(r)["memory"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Runs = r.Runs[:1]
	if got := tables(r)["memory"]; !strings.HasPrefix(got, "| | Freehold, 100 | ToolHive's operator, 100 |\n") {
		t.Errorf("a single run:\n%s", got)
	}
}

// spread is the sample with its MCPServers spread over namespaces, and twice as many of them.
func spread() *recording.Recording {
	r := sample()
	for i := range r.Runs {
		r.Runs[i].Servers *= 2
		r.Runs[i].PerNamespace = recording.PerNamespace
	}
	return r
}

// The tables and plots show the runs that are spread, as if there were no others. The others have a section of their own.
func TestTablesShowTheRunsThatAreSpread(t *testing.T) {
	alone, both := spread(), spread()
	for _, run := range sample().Runs {
		both.Add(run)
	}
	both.Add(recording.Run{Servers: 50, PerNamespace: 5}) // No table but that of runs is about it.
	want, got := tables(alone), tables(both)
	wantRuns := `| MCPServers | In a namespace | Commit | Rounds | Load before, after | Took |
|---:|---:|---|---:|---:|---:|
| 50 | 5 |  | 0 | 0.0, 0.0 | 0 min |
| 100 | all |  | 3 | 0.0, 0.0 | 0 min |
| 200 | 20 |  | 3 | 0.0, 0.0 | 0 min |
| 300 | all |  | 3 | 0.0, 0.0 | 0 min |
| 600 | 20 |  | 3 | 0.0, 0.0 | 0 min |
`
	wantOne := `## All in one namespace

| | Freehold, 100 | ToolHive's operator, 100 | Freehold, 300 | ToolHive's operator, 300 |
|---|---:|---:|---:|---:|
| creation: seconds until all MCPServers are Ready | 4 | 8 | 12 | 24 |
| creation: CPU seconds of the operator | 1 | 2 | 3 | 6 |
| creation: CPU seconds of kube-controller-manager | 7 | 7 | 7 | 7 |
| MCPOIDCConfig: seconds until rolled out | 2 | 4 | 6 | 12 |
| deletion: seconds | 2 | 4 | 6 | 12 |
`
	if want["one"] != "" {
		t.Errorf("a section about nothing:\n%s", want["one"])
	}
	want["runs"], want["one"] = wantRuns, wantOne
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tables (-want +got):\n%s", diff)
	}
	for i, p := range plots(alone) {
		if diff := cmp.Diff(p.draw(), plots(both)[i].draw()); diff != "" {
			t.Errorf("the plot %s (-want +got):\n%s", p.name, diff)
		}
	}
}

// Runs beside a later release of ToolHive change no other table, and no plot. They have a section of their own.
func TestALaterReleaseHasItsOwnSection(t *testing.T) {
	alone, both := spread(), spread()
	for _, run := range spread().Runs {
		for _, release := range []string{"v0.9.0", "v0.10.0"} {
			run.Later = release
			both.Add(run)
		}
	}
	want, got := tables(alone), tables(both)
	if want["later"] != "" {
		t.Errorf("a section about nothing:\n%s", want["later"])
	}
	want["later"] = `## Beside ToolHive v0.10.0

| | Freehold, 200 | ToolHive v0.10.0, 200 | Freehold, 600 | ToolHive v0.10.0, 600 |
|---|---:|---:|---:|---:|
| seconds until all MCPServers are Ready | 4 | 8 | 12 | 24 |
| creation: CPU seconds | 1 | 2 | 3 | 6 |
| creation: writes for each MCPServer | 0.5 | 1 | 0.5 | 1 |
| MCPOIDCConfig: CPU seconds | 1 | 2 | 3 | 6 |
| restart: CPU seconds | 1 | 2 | 3 | 6 |
| deletion: seconds | 2 | 4 | 6 | 12 |
| deletion: CPU seconds | 1 | 2 | 3 | 6 |
| peak of memory, MiB | 80 | 80 | 80 | 80 |
`
	want["runs"] = `| MCPServers | In a namespace | ToolHive | Commit | Rounds | Load before, after | Took |
|---:|---:|---|---|---:|---:|---:|
| 200 | 20 | v0.0.1 |  | 3 | 0.0, 0.0 | 0 min |
| 200 | 20 | v0.10.0 |  | 3 | 0.0, 0.0 | 0 min |
| 200 | 20 | v0.9.0 |  | 3 | 0.0, 0.0 | 0 min |
| 600 | 20 | v0.0.1 |  | 3 | 0.0, 0.0 | 0 min |
| 600 | 20 | v0.10.0 |  | 3 | 0.0, 0.0 | 0 min |
| 600 | 20 | v0.9.0 |  | 3 | 0.0, 0.0 | 0 min |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tables (-want +got):\n%s", diff)
	}
	for i, p := range plots(alone) {
		if diff := cmp.Diff(p.draw(), plots(both)[i].draw()); diff != "" {
			t.Errorf("the plot %s (-want +got):\n%s", p.name, diff)
		}
	}
}

// While no run is spread, the page is about those with all MCPServers in one namespace, and says nothing of namespaces.
func TestRunsInOneNamespaceAreShownWhileThereAreNoOthers(t *testing.T) {
	got := tables(sample())
	wantRuns := `| MCPServers | Commit | Rounds | Load before, after | Took |
|---:|---|---:|---:|---:|
| 100 |  | 3 | 0.0, 0.0 | 0 min |
| 300 |  | 3 | 0.0, 0.0 | 0 min |
`
	if diff := cmp.Diff(wantRuns, got["runs"]); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
	if got["one"] != "" || !strings.HasPrefix(got["memory"], "| | Freehold, 100 |") || len(plots(sample())[0].lines) != 3 {
		t.Errorf("the tables: %v", got)
	}
}

// Runs with another number in each namespace are none that the page is about.
func TestWithoutARunToShowNothingIsWritten(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "recorded.json")
	if err := (&recording.Recording{Runs: []recording.Run{{Servers: 50, PerNamespace: 5}}}).Write(recorded); err != nil {
		t.Fatal(err)
	}
	err := run(recorded, filepath.Join(dir, "soak.json"), filepath.Join(dir, "x.md"), dir)
	if err == nil || !strings.Contains(err.Error(), "record one") {
		t.Errorf("got %v", err)
	}
}

func TestASoakIsATableOfResults(t *testing.T) {
	got := soaked(&recording.Soak{
		Machine: recording.Machine{CPUs: 2, CPUModel: "Some", MemoryMiB: 2048, Kubernetes: "v1"},
		Commit:  "abc", Servers: 50, Seed: 7, Churn: 60, Took: 180, Remark: "It was hot.",
		Results: []recording.Result{{What: "writes", Found: "0"}, {What: "labels", Found: "2\n    a\n    b", Failed: true}},
	})
	want := `50 MCPServers, seed 7, commit abc, Kubernetes v1, 2 processors (Some), 2.0 GiB; churn for 1 min of 3.
It was hot.

| What | Result |
|---|---|
| writes | 0 |
| **Failed:** labels | 2 a b |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTicksAreRoundNumbers(t *testing.T) {
	for largest, want := range map[float64][]float64{
		0: {0, 0.2, 0.4, 0.6, 0.8, 1}, 6: {0, 1, 2, 3, 4, 5, 6}, 6.1: {0, 2, 4, 6, 8}, 300: {0, 50, 100, 150, 200, 250, 300},
		0.25: {0, 0.05, 0.1, 0.15, 0.2, 0.25},
	} {
		got := ticks(largest)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
			t.Errorf("%v (-want +got):\n%s", largest, diff)
		}
	}
}

func TestPlotsAreWellFormedAndTheSameEachTime(t *testing.T) {
	r := sample()
	for _, p := range plots(r) {
		picture := p.draw()
		if picture != p.draw() {
			t.Errorf("%s differs from one time to the next", p.name)
		}
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", p.name, err, picture)
			}
		}
	}
	children := plots(r)[0]
	if len(children.lines) != 3 {
		t.Fatalf("it has %d lines", len(children.lines))
	}
	// Growth in proportion is a straight line through the origin of the axes.
	ends := regexp.MustCompile(`<polyline points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"`).FindStringSubmatch(children.draw())
	if diff := cmp.Diff([]string{"220.0", "260.0", "532.0", "228.0"}, ends[1:]); diff != "" {
		t.Errorf("the line of the raw applier (-want +got):\n%s", diff)
	}
	r.Runs = r.Runs[:1]
	r.Runs[0].ToolHive = nil
	if p := plots(r)[0]; len(p.lines) != 2 || strings.Contains(p.draw(), "ToolHive") {
		t.Error("what was left out is drawn")
	}
}

func TestReplaceNeedsATextForEachPlace(t *testing.T) {
	const document = "a\n<!-- BEGIN x -->\nold\n<!-- END x -->\nb\n"
	got, err := replace(document, map[string]string{"x": "new\n"})
	if want := "a\n<!-- BEGIN x -->\nnew\n<!-- END x -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	for name, c := range map[string]struct {
		document string
		texts    map[string]string
	}{
		"no place":      {document, map[string]string{"x": "", "y": ""}},
		"no text":       {document, map[string]string{}},
		"no end":        {"<!-- BEGIN x -->\n", map[string]string{"x": ""}},
		"twice":         {document + document, map[string]string{"x": ""}},
		"unknown place": {document + strings.ReplaceAll(document, "x", "y"), map[string]string{"x": ""}},
	} {
		if _, err := replace(c.document, c.texts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The text around the tables has no figure that the next recording would make false, and shows each plot.
func TestTheDocument(t *testing.T) {
	const dir = "../../../docs"
	text, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(filepath.Join(dir, "performance", "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plots(r) {
		if !strings.Contains(string(text), "(performance/"+p.name+".svg)") {
			t.Errorf("it does not show the plot %s", p.name)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "performance", "*.svg"))
	if err != nil || len(pictures) != len(plots(r)) {
		t.Errorf("there are %d pictures, want %d, %v", len(pictures), len(plots(r)), err)
	}
	outside := regexp.MustCompile(`(?s)<!-- BEGIN .*?<!-- END .*?-->`).ReplaceAllString(string(text), "")
	measured := regexp.MustCompile(`\d+([.,]\d+)? ?(s|ms|seconds|minutes|MiB|%|times|writes)\b`)
	if found := measured.FindAllString(outside, -1); len(slices.DeleteFunc(found, isSetting)) > 0 {
		t.Errorf("figures outside of the tables: %v", found)
	}
}

// isSetting reports whether a figure is one that the program sets, and not one that it measures.
func isSetting(figure string) bool { return slices.Contains([]string{"5 s", "2 %"}, figure) }
