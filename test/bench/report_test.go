// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// good is a report of an operator that does what it should, beside ToolHive's, which takes twice the time.
func good() *report {
	calm := stage{Took: time.Second, Use: use{PeakMiB: 50, CPU: time.Second}}
	costly := stage{Took: 2 * time.Second, Use: use{PeakMiB: 90, CPU: 2 * time.Second}}
	created := calm
	created.Writes = tally{Applies: map[string]int{"freehold-status": 400, "freehold-access": 2200}}
	raw := arrival{childrenExist: 10 * time.Second, proxiesReady: 10 * time.Second}
	return &report{
		Servers: 200, Children: 10, Workers: 8, CPUs: 4,
		Rounds: []round{{Raw: raw, Operator: arrival{
			childrenExist: 9 * time.Second, proxiesReady: 11 * time.Second, serversReady: 12 * time.Second,
		}, ToolHive: arrival{
			childrenExist: 20 * time.Second, proxiesReady: 21 * time.Second, serversReady: 22 * time.Second,
		}}},
		Raw: edited(calm, 50, 0),
		Freehold: measurements{
			Create: []stage{created}, Idle: calm, Label: calm, LabelsLeft: 200, Images: edited(calm, 50, 0), Scales: edited(calm, 0, 50),
			Restarts: []stage{calm, calm, calm}, Config: calm, Delete: calm,
		},
		Edits:   latencies{Calm: []time.Duration{100 * time.Millisecond}, Slow: []time.Duration{120 * time.Millisecond}},
		Foreign: foreign{Objects: 5000, Restarts: []stage{calm, calm, calm}},
		ToolHive: measurements{
			Create: []stage{costly}, Idle: costly, Label: costly, Images: edited(costly, 0, 50), Scales: edited(costly, 0, 50),
			Restarts: []stage{costly, costly, costly}, Config: costly, Delete: costly,
		},
		Outage: outage{Minutes: []tally{{Applies: map[string]int{"freehold-backend": 2000}}, {}}},
	}
}

// edited are answers to fifty edits by hand, which took from 1 to 50 ms.
func edited(s stage, named, undone int) answers {
	a := answers{Stage: s, Named: named, Undone: undone}
	for i := range 50 {
		a.Times = append(a.Times, time.Duration(i+1)*time.Millisecond)
	}
	return a
}

func thresholdsOf(t *testing.T) map[string]threshold {
	t.Helper()
	thresholds, err := readThresholds(thresholdsFile)
	if err != nil {
		t.Fatal(err)
	}
	return thresholds
}

func TestAGoodOperatorMissesNoThreshold(t *testing.T) {
	r := good()
	if err := r.judge(thresholdsOf(t)); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Figures {
		if f.Missed {
			t.Errorf("%s is %v and missed", f.Key, f.Value)
		}
		if f.Max == nil {
			t.Errorf("%s has no threshold", f.Key)
		}
	}
}

func TestEachThresholdCanBeMissed(t *testing.T) {
	wrote := func(n int) tally { return tally{Others: map[string]int{"create events": n}} }
	for key, spoil := range map[string]func(r *report){
		"childrenRatio":         func(r *report) { r.Rounds[0].Operator[childrenExist] = time.Minute },
		"proxiesRatio":          func(r *report) { r.Rounds[0].Operator[proxiesReady] = time.Minute },
		"slowRatio":             func(r *report) { r.Edits.Slow[0] = 201 * time.Millisecond },
		"appliesBeyondChildren": func(r *report) { r.Freehold.Create[0].Writes.Applies["freehold-status"]++ },
		"otherWrites":           func(r *report) { r.Freehold.Create[0].Writes.Others = map[string]int{"create events": 1} },
		"refusedWrites":         func(r *report) { r.Freehold.Create[0].Writes.Refused = 1 },
		"reads":                 func(r *report) { r.Freehold.Create[0].Writes.Reads = map[string]int{"get pods": 1} },
		"idleWrites":            func(r *report) { r.Freehold.Idle.Writes = wrote(1) },
		"labelWrites":           func(r *report) { r.Freehold.Label.Writes = wrote(1) },
		"imageWrites":           func(r *report) { r.Freehold.Images.Stage.Writes = wrote(10000) },
		"imagesUndone":          func(r *report) { r.Freehold.Images.Undone = 1 },
		"configWrites":          func(r *report) { r.Freehold.Config.Writes = wrote(10000) },
		"deleteWrites":          func(r *report) { r.Freehold.Delete.Writes = wrote(10000) },
		"restartWrites":         func(r *report) { r.Freehold.Restarts[1].Writes = wrote(1) },
		"outageFirstMinute":     func(r *report) { r.Outage.Minutes[0] = wrote(10000) },
		"outageLastMinute":      func(r *report) { r.Outage.Minutes[1] = wrote(10000) },
		"peakMiB":               func(r *report) { r.ToolHive.Idle.Use.PeakMiB, r.Freehold.Restarts[1].Use.PeakMiB = 10000, 1000 },
		"peakRatio":             func(r *report) { r.Freehold.Config.Use.PeakMiB = 100 },
		"conflictRatio":         func(r *report) { r.Freehold.Images.Times[49] = 500 * time.Millisecond },
		"deleteRatio":           func(r *report) { r.Freehold.Delete.Took = time.Minute },
		"createCPURatio":        func(r *report) { r.Freehold.Create[0].Use.CPU = 2 * time.Second },
		"configCPURatio":        func(r *report) { r.Freehold.Config.Use.CPU = time.Minute },
		"deleteCPURatio":        func(r *report) { r.Freehold.Delete.Use.CPU = time.Minute },
		"restartCPURatio":       func(r *report) { slow(r.ToolHive.Restarts, -1500*time.Millisecond) },
		"foreignCPU":            func(r *report) { slow(r.Foreign.Restarts, time.Second) },
		"foreignMiB":            func(r *report) { grow(r.Foreign.Restarts, 3) },
	} {
		t.Run(key, func(t *testing.T) {
			r := good()
			spoil(r)
			if err := r.judge(thresholdsOf(t)); err != nil {
				t.Fatal(err)
			}
			var missed []string
			for _, f := range r.Figures {
				if f.Missed {
					missed = append(missed, f.Key)
				}
			}
			if diff := cmp.Diff([]string{key}, missed); diff != "" {
				t.Errorf("missed (-want +got):\n%s", diff)
			}
			if r.missed() != 1 {
				t.Errorf("%d are missed", r.missed())
			}
		})
	}
}

// slow adds CPU time to all stages but the last, and so to their median.
func slow(stages []stage, by time.Duration) {
	for i := range len(stages) - 1 {
		stages[i].Use.CPU += by
	}
}

// grow does the same with memory.
func grow(stages []stage, mebibytes float64) {
	for i := range len(stages) - 1 {
		stages[i].Use.PeakMiB += mebibytes
	}
}

func TestOneOddRestartIsNoThreshold(t *testing.T) {
	r := good()
	slow(r.Foreign.Restarts[:2], time.Minute)
	grow(r.Foreign.Restarts[:2], 15)
	r.Freehold.Restarts[2].Use.CPU = time.Minute
	if err := r.judge(thresholdsOf(t)); err != nil {
		t.Fatal(err)
	}
	if r.missed() != 0 {
		t.Errorf("%d thresholds are missed", r.missed())
	}
}

func TestRatiosAreMediansOfRounds(t *testing.T) {
	r := good()
	for _, cpu := range []time.Duration{4 * time.Second, 8 * time.Second} {
		s := r.Freehold.Create[0]
		s.Use.CPU = cpu
		r.Freehold.Create = append(r.Freehold.Create, s)
		r.ToolHive.Create = append(r.ToolHive.Create, r.ToolHive.Create[0])
	}
	if got := figureOf(t, r, "createCPURatio").Value; got != 2 {
		t.Errorf("the median of 0.5, 2 and 4 is %v", got)
	}
}

func figureOf(t *testing.T, r *report, key string) figure {
	t.Helper()
	if err := r.judge(nil); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.Key == key })
	if i < 0 {
		t.Fatalf("there is no figure %s", key)
	}
	return r.Figures[i]
}

func TestToolHivesFiguresAreThoseOfTheRun(t *testing.T) {
	r := good()
	grow(r.ToolHive.Restarts, 30)
	r.ToolHive.Create[0].Writes.Others = map[string]int{"update pods": 4000}
	for key, want := range map[string]string{
		"peakRatio": "120 MiB", "deleteRatio": "2 s", "createCPURatio": "2 s", "restartCPURatio": "2 s", "restartWrites": "0",
		"childrenRatio": "2", "proxiesRatio": "2.10", "appliesBeyondChildren": "13 (20 writes, 7 children)",
	} {
		if got := figureOf(t, r, key).ToolHive; got != want {
			t.Errorf("%s: ToolHive's is %q, want %q", key, got, want)
		}
	}
}

func TestWhatIsLeftOutIsNotJudged(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(r *report)
		want  []string
	}{
		"ToolHive": {func(r *report) {
			r.ToolHive = measurements{}
			r.Rounds[0].ToolHive = nil
		}, []string{"deleteRatio", "createCPURatio", "restartCPURatio", "configCPURatio", "deleteCPURatio", "peakRatio"}},
		"foreign objects": {func(r *report) { r.Foreign = foreign{} }, []string{"foreignCPU", "foreignMiB"}},
		"outage":          {func(r *report) { r.Outage = outage{} }, []string{"outageFirstMinute", "outageLastMinute"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.leave(r)
			if err := r.judge(thresholdsOf(t)); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, f := range r.Figures {
				if f.LeftOut {
					left = append(left, f.Key)
				}
			}
			if diff := cmp.Diff(c.want, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if r.missed() != 0 {
				t.Errorf("%d thresholds are missed", r.missed())
			}
			var table bytes.Buffer
			if err := r.table(&table); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(table.String(), "left out"); n != len(c.want) {
				t.Errorf("%d lines say that something is left out:\n%s", n, table.String())
			}
			if err := r.json(&table); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestATimeThatIsNoNumberIsNotGood(t *testing.T) {
	r := good()
	r.Rounds[0] = round{}
	if err := r.judge(thresholdsOf(t)); err != nil {
		t.Fatal(err)
	}
	if r.missed() != 2 {
		t.Errorf("%d thresholds are missed, want those of the two ratios", r.missed())
	}
}

func TestAThresholdThatNothingMeasuresIsAnError(t *testing.T) {
	err := good().judge(map[string]threshold{"childrenRatios": {Max: 1}})
	if err == nil || !strings.Contains(err.Error(), "childrenRatios") {
		t.Errorf("got %v", err)
	}
}

func TestAThresholdHoldsUpToItsNumberOfServers(t *testing.T) {
	for servers, missed := range map[int]bool{1000: true, 1001: false} {
		r := good()
		r.Servers = servers
		if err := r.judge(map[string]threshold{"peakMiB": {Max: 49, UpTo: 1000}}); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.Key == "peakMiB" })
		if r.Figures[i].Missed != missed {
			t.Errorf("with %d MCPServers missed is %t", servers, r.Figures[i].Missed)
		}
	}
}

func TestAThresholdCanBeHigherBeyond(t *testing.T) {
	thresholds, err := readThresholds([]byte("peakMiB: {max: 70, upTo: 1000, beyond: {max: 200, upTo: 5000}}"))
	if err != nil {
		t.Fatal(err)
	}
	limit := thresholds["peakMiB"]
	for servers, want := range map[int]float64{1: 70, 1000: 70, 1001: 200, 5000: 200} {
		if got := limit.limit(servers); got == nil || *got != want {
			t.Errorf("with %d MCPServers the limit is %v, want %v", servers, got, want)
		}
	}
	if got := limit.limit(5001); got != nil {
		t.Errorf("with 5001 MCPServers there is a limit, %v", *got)
	}
}

func TestWritesOfTheConfigurationAreNoneOfTheServers(t *testing.T) {
	r := good()
	r.Freehold.Delete.Writes = tally{
		Applies: map[string]int{"freehold-finalizer": 200, "freehold-config-status": 1}, All: map[string]int{"apply mcpservers": 200, "apply mcpoidcconfigs/status": 1},
	}
	if got := figureOf(t, r, "deleteWrites").Value; got != 1 {
		t.Errorf("got %v writes for an MCPServer", got)
	}
}

func TestThresholdsAreReadStrictly(t *testing.T) {
	for _, text := range []string{
		"a: {maximum: 1}", "a: {max: lots}", "a: {max: 1}\na: {max: 2}", "a: {max: 1, beyond: {maximum: 2}}",
	} {
		if _, err := readThresholds([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestTheMedianIsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{{[]float64{2}, 2}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(c.numbers); got != c.want {
			t.Errorf("the median of %v is %v, want %v", c.numbers, got, c.want)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	force := false
	got := count([]*audit.Event{
		{Verb: "patch", Resource: "services", Force: &force, FieldManager: "freehold-service", Code: 201},
		{Verb: "patch", Resource: "services", Force: &force, FieldManager: "freehold-service", Code: 409},
		{Verb: "patch", Resource: "pods", Code: 200},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 403},
		{Verb: "list", Resource: "pods", Code: 200},
		{Verb: "get", URI: "/version", Code: 200},
		{Verb: "watch", Resource: "pods", Code: 200},
	})
	want := tally{
		Applies: map[string]int{"freehold-service": 2},
		Others:  map[string]int{"patch pods": 1, "create events": 1},
		All:     map[string]int{"apply services": 2, "patch pods": 1, "create events": 1},
		Reads:   map[string]int{"list pods": 1, "get /version": 1},
		Refused: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.of("services") != 2 || got.of("service") != 0 || got.of("events") != 1 {
		t.Errorf("writes of resources: %v", got.All)
	}
	if got.writes() != 4 || got.applies() != 2 {
		t.Errorf("%d writes, %d of them applies", got.writes(), got.applies())
	}
}

func TestTheReportIsWritten(t *testing.T) {
	r := good()
	r.Freehold.Restarts[0].Writes = tally{Applies: map[string]int{"freehold-proxy": 7}}
	if err := r.judge(thresholdsOf(t)); err != nil {
		t.Fatal(err)
	}
	var table, document bytes.Buffer
	if err := r.table(&table); err != nil {
		t.Fatal(err)
	}
	if strings.Count(table.String(), "MISSED") != 1 || !strings.Contains(table.String(), "operator / raw applier  0.90") {
		t.Errorf("got:\n%s", table.String())
	}
	if err := r.json(&document); err != nil {
		t.Fatal(err)
	}
	var read report
	if err := json.Unmarshal(document.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &read); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestFlagsThatDoNotFitAreRefused(t *testing.T) {
	for _, c := range []struct {
		args string
		ok   bool
	}{
		{"", true},
		{"-n 1000 -rounds 1 -idle 10s -outage 2m -json", true},
		{"-n 5000 -foreign 0 -toolhive=false", true},
		{"-outage 0 -record x.json", true},
		{"-grow 100,300 -record x.json", true},
		{"-grow 100,300", true},
		{"-grow 100,x -record x.json", false},
		{"-grow 0 -record x.json", false},
		{"-n 0", false},
		{"-foreign -1", false},
		{"-per-namespace 0", true},
		{"-per-namespace -1", false},
		{"-idle 0s", false},
		{"-outage 90s", false},
		{"-outage 1m", false},
		{"more", false},
	} {
		var usage bytes.Buffer
		if _, err := parse(strings.Fields(c.args), &usage); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
