// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// about compares what was computed on ways that round differently.
var about = cmpopts.EquateApprox(1e-6, 0)

// sampled returns points of a function.
func sampled(of func(x float64) float64, xs ...float64) (points []point) {
	for _, x := range xs {
		points = append(points, point{x, of(x)})
	}
	return points
}

func TestFitsFindWhatMadeThePoints(t *testing.T) {
	square := power{3, 2}
	got, ok := fitPower(sampled(square.at, 100, 300, 1000))
	if !ok || !cmp.Equal(square, got, cmp.AllowUnexported(power{}), about) {
		t.Errorf("power: got %v, %v", got, ok)
	}
	proportion := straight{60, 0.07}
	line, ok := fitStraight(sampled(proportion.at, 100, 300, 1000))
	if !ok || !cmp.Equal(proportion, line, cmp.AllowUnexported(straight{}), about) {
		t.Errorf("straight: got %v, %v", line, ok)
	}
	// The exponents of what is above a constant: a fit without one would find about half of them.
	for _, exponent := range []float64{0.8, 1, 1.2} {
		above := power{0.05, exponent}
		constant, got, ok := fitAbove(sampled(func(x float64) float64 { return 70 + above.at(x) }, 100, 300, 1000, 3000))
		if !ok || math.Abs(got.exponent-exponent) > 0.01 || math.Abs(constant-70) > 0.5 {
			t.Errorf("%v above a constant: got %v and %v, %v", exponent, constant, got, ok)
		}
	}
	// Values that are not exact: one in excess by a tenth and one short of as much.
	got, ok = fitPower([]point{{100, 110}, {1000, 1000}, {10000, 9000}})
	if want := 1 + math.Log10(0.9/1.1)/2; !ok || math.Abs(got.exponent-want) > 1e-9 {
		t.Errorf("inexact: got %v, want %v", got.exponent, want)
	}
}

func TestFitsNeedEnough(t *testing.T) {
	for name, points := range map[string][]point{
		"none": nil, "one": {{100, 1}}, "one place": {{0.1, 1}, {0.1, 2}, {0.1, 4}}, "not positive": {{100, 0}, {300, 2}},
	} {
		if got, ok := fitPower(points); ok {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if _, _, ok := fitAbove(sampled(power{1, 1}.at, 100, 300, 1000)); ok {
		t.Error("a constant, a factor and an exponent fit any three points")
	}
	if _, _, ok := fitAbove([]point{{100, 0}, {200, 1}, {300, 2}, {400, 3}}); ok {
		t.Error("logarithms of what is not positive")
	}
}

// grown is a sample whose costs grow as powers, and whose memory does above a constant.
func grown() *recording.Recording {
	r := &recording.Recording{}
	subject := func(n float64, worse float64) recording.Subject {
		processes := func(factor float64) map[string]float64 {
			return map[string]float64{
				recording.Operator: factor * n / 30, recording.APIServer: factor * math.Pow(n, worse),
				recording.ControllerManager: factor * math.Pow(n, 1.5), recording.Etcd: factor * n,
			}
		}
		resident := recording.Stage{PeakMiB: 70 + n/10, SettledMiB: 60 + n/20, Took: 1 + n/500, CPU: processes(0.5)}
		return recording.Subject{
			Milestones: map[string]float64{recording.ServersReady: math.Pow(n, worse) / 5},
			Stages: map[string]recording.Stage{
				recording.Create: {CPU: processes(1), Writes: map[string]int{"apply services": 13 * int(n)}},
				recording.Idle:   resident, recording.Config: resident, recording.Restart: resident,
			},
		}
	}
	for _, n := range []float64{100, 300, 1000, 3000} {
		theirs := subject(n, 1.01)
		r.Runs = append(r.Runs, recording.Run{Servers: int(n), Freehold: subject(n, 1.1), ToolHive: &theirs})
	}
	return r
}

func TestTheTableOfGrowth(t *testing.T) {
	r := grown()
	want := `| Exponent | Freehold | ToolHive's operator |
|---|---:|---:|
| CPU seconds of the operator | 1.00 | 1.00 |
| peak of memory, MiB, above a constant | 1.00 | 1.00 |
| CPU seconds of kube-apiserver | 1.10, above 1.05 | 1.01 |
| seconds until all are Ready | 1.10, above 1.05 | 1.01 |
| CPU of kube-controller-manager | 1.50 | 1.50 |
| CPU of etcd | 1.00 | 1.00 |
| CPU of the operator, a restart | 1.00 | 1.00 |
`
	if diff := cmp.Diff(want, growth(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// One run less: the other exponents stay, and three runs do not tell a constant from what is above it.
	left := &recording.Recording{Runs: append(r.Runs[:1:1], r.Runs[2:]...)}
	want = strings.Replace(want, "| peak of memory, MiB, above a constant | 1.00 | 1.00 |\n", "", 1)
	if diff := cmp.Diff(want, growth(left)); diff != "" {
		t.Errorf("one run left out (-want +got):\n%s", diff)
	}
	// ToolHive's operator was left out of all runs but one.
	for i := range left.Runs[1:] {
		left.Runs[i+1].ToolHive = nil
	}
	if got := growth(left); !strings.HasPrefix(got, "| Exponent | Freehold |\n|---|---:|\n") {
		t.Errorf("ToolHive's operator left out:\n%s", got)
	}
	left.Runs = left.Runs[:1]
	if got := growth(left); got != "" {
		t.Errorf("a single run:\n%s", got)
	}
}

func TestTheModelOfShards(t *testing.T) {
	m := model{
		rest: straight{50, 0.1}, peak: straight{60, 0.2}, restart: straight{1, 0.01},
		ready: power{2, 1}, cpu: power{0.1, 1}, configCPU: power{0.2, 1}, writes: 10,
	}
	want := shard{restMiB: 60, peakMiB: 80, restart: 2, created: 2000.0 / 3600, cpu: 10, writes: 0.5, events: 0.5, configCPU: 20}
	if diff := cmp.Diff(want, m.byNamespaces(1000, 10), cmp.AllowUnexported(shard{}), about); diff != "" {
		t.Errorf("by namespaces (-want +got):\n%s", diff)
	}
	want = shard{restMiB: 150, peakMiB: 260, restart: 11, created: 2000.0 / 3600, cpu: 100, writes: 0.5, events: 5, configCPU: 200}
	if diff := cmp.Diff(want, m.bySelectors(1000, 10), cmp.AllowUnexported(shard{}), about); diff != "" {
		t.Errorf("by selectors (-want +got):\n%s", diff)
	}
	// What grows faster than in proportion is divided where MCPServers are: each share takes as long as one operator with as many.
	m.ready = power{1, 2}
	if got := m.byNamespaces(1000, 10).created; math.Abs(got-10*100*100/3600.0) > 1e-9 {
		t.Errorf("they are Ready after %v hours", got)
	}
}

func TestTheTableOfShards(t *testing.T) {
	r := grown()
	soak := &recording.Soak{
		Machine: recording.Machine{CPUModel: "Some"}, Servers: 5000,
		Results: []recording.Result{
			{What: "creation of 5,000 at once", Found: "all Ready after 1,000 s; one key waited up to 873 s"},
			{What: "writes after the restart", Found: "0; the restart was at rest after 12 s"},
			{What: "1,000 deleted and created again", Found: "all Ready after 795 s"},
			{What: "resident memory, without `GOMEMLIMIT`", Found: "440 MiB and 435 MiB"},
		},
	}
	computed := math.Pow(5000, 1.1) / 5
	begin := "| Each of 20 operators | by namespaces | by selectors, at most |\n|---|---:|---:|\n| MiB at rest | 310 | 5060 |\n"
	end := fmt.Sprintf("\n\nFor the 5000 MCPServers of the [soak](#soak), on Some, it computes\n"+
		"310 for 440 MiB at rest (-30 %%), %.0f for 1000 s until all were Ready (%+.0f %%), 11 for 12 s for a restart (-8 %%).\n",
		computed, 100*(computed/1000-1))
	got := sharded(r, soak)
	if !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) {
		t.Errorf("got:\n%s\nwant:\n%s...%s", got, begin, end)
	}
	// As the program words it that records one now.
	soak.Results = []recording.Result{
		{What: "creation", Found: "children exist after 579.72 s, proxies ready after 860.44 s, MCPServers Ready after 1000.00 s"},
		{What: "restart", Found: "quiet after 12.0 s, 0 writes, 500 MiB at most"},
		{What: "rest after: creation", Found: "the queue is empty after up to 10 keys, which waited up to 3s"},
		{What: "resident memory, MiB", Found: "440.0 before, 435.0 after; at most 500.0"},
	}
	if again := sharded(r, soak); again != got {
		t.Errorf("other words:\n%s", again)
	}
	soak.Results = nil
	if got := sharded(r, soak); strings.Contains(got, "soak") {
		t.Errorf("a soak without results:\n%s", got)
	}
	r.Runs = r.Runs[:1]
	if got := sharded(r, soak); got != "" {
		t.Errorf("a single run:\n%s", got)
	}
}

func TestAxesOfPowersOfTen(t *testing.T) {
	for name, c := range map[string]struct {
		smallest, largest float64
		want              []float64
	}{
		"between": {120, 3000, []float64{100, 1000, 10000}},
		"exact":   {100, 1000, []float64{100, 1000}},
		"one":     {1, 1, []float64{1, 10}},
		"below 1": {0.02, 5, []float64{0.01, 0.1, 1, 10}},
	} {
		if diff := cmp.Diff(c.want, decades(c.smallest, c.largest).ticks, about); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	a := decades(100, 3000)
	if got := []float64{a.part(100), a.part(1000), a.part(10000)}; !cmp.Equal([]float64{0, 0.5, 1}, got, about) {
		t.Errorf("powers of ten are not equally far from each other: %v", got)
	}
	if len(a.between) != 16 {
		t.Errorf("there are %d marks between two decades", len(a.between))
	}
}

func TestThePlotOfGrowth(t *testing.T) {
	p := growthPlot(grown())
	var numbers, names []string
	for _, e := range elements(t, p.draw()) {
		if _, err := strconv.ParseFloat(e.text, 64); err == nil {
			numbers = append(numbers, e.text)
		} else if e.XMLName.Local == "text" {
			names = append(names, e.text)
		}
	}
	// The values are from 3.3 to 1335: CPU seconds of the operator with few, and seconds with many MCPServers.
	if diff := cmp.Diff([]string{"1", "10", "100", "1000", "10000", "100", "1000", "10000"}, numbers); diff != "" {
		t.Errorf("numbers of the axes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{p.title, "MCPServers", operatorCPU, peakMemory, apiServerCPU, untilReady}, names); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	// The CPU time of the operator grows in proportion, so it lies on its dotted line.
	dots := regexp.MustCompile(`<line x1="(.*)" y1="(.*)" x2="(.*)" y2="(.*)" stroke="#0072b2" stroke-dasharray`)
	lines := regexp.MustCompile(`<polyline points="(\S+),(\S+) .* (\S+),(\S+)" fill="none" stroke="#0072b2"`)
	dotted, shown := dots.FindStringSubmatch(p.draw()), lines.FindStringSubmatch(p.draw())
	if slope(t, dotted[1:]) != slope(t, shown[1:]) || !slices.Equal(dotted[1:3], shown[1:3]) {
		t.Errorf("the line from %v is not on that from %v", shown[1:], dotted[1:])
	}
	if got := growthPlot(&recording.Recording{}).draw(); !strings.Contains(got, ">MCPServers<") {
		t.Errorf("nothing was recorded: %s", got)
	}
}

// slope returns that of a line from x1, y1 to x2, y2, rounded.
func slope(t *testing.T, ends []string) float64 {
	t.Helper()
	var numbers [4]float64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseFloat(ends[i], 64); err != nil {
			t.Fatal(err)
		}
	}
	return math.Round(100 * (numbers[3] - numbers[1]) / (numbers[2] - numbers[0]))
}

// element is one of a picture.
type element struct {
	XMLName xml.Name
	text    string
	of      map[string]string
}

func (e element) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.of[name], 64)
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	return v
}

// elements returns those of a picture that have attributes, and fails where it is not well-formed.
func elements(t *testing.T, picture string) (found []element) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{XMLName: token.Name, of: map[string]string{}}
			for _, a := range token.Attr {
				e.of[a.Name.Local] = a.Value
			}
			found = append(found, e)
		case xml.CharData:
			if len(found) > 0 && found[len(found)-1].text == "" {
				found[len(found)-1].text = strings.TrimSpace(string(token))
			}
		}
	}
}

// Everything is inside of the picture, and what shows values is inside of the axes.
func TestPlotsStayInTheirFrames(t *testing.T) {
	for _, p := range append(plots(grown()), plots(sample())...) {
		for _, e := range elements(t, p.draw()) {
			var ends []point
			margin := 0.0
			switch e.XMLName.Local {
			case "line":
				ends = []point{{e.number(t, "x1"), e.number(t, "y1")}, {e.number(t, "x2"), e.number(t, "y2")}}
			case "rect":
				x, y := e.number(t, "x"), e.number(t, "y")
				ends = []point{{x, y}, {x + e.number(t, "width"), y + e.number(t, "height")}}
			case "circle":
				ends, margin = []point{{e.number(t, "cx"), e.number(t, "cy")}}, e.number(t, "r")
			case "text":
				ends = textEnds(t, e)
			case "polyline", "polygon":
				for pair := range strings.FieldsSeq(e.of["points"]) {
					var at point
					if _, err := fmt.Sscanf(pair, "%f,%f", &at.x, &at.y); err != nil {
						t.Fatalf("%s: %v", pair, err)
					}
					ends = append(ends, at)
				}
			}
			for _, at := range ends {
				if !(at.x-margin >= 0 && at.x+margin <= width && at.y-margin >= 0 && at.y+margin <= height) {
					t.Errorf("%s: %v leaves the picture at %v", p.name, e, at)
				}
				shows := e.XMLName.Local == "polyline" || e.of["stroke-dasharray"] != ""
				if shows && !(at.x >= left-0.1 && at.x <= width-right+0.1 && at.y >= above-0.1 && at.y <= height-bottom+0.1) {
					t.Errorf("%s: %v leaves the axes at %v", p.name, e, at)
				}
			}
		}
	}
}

// textEnds returns where a text begins and ends, about: letters are 0.6 times as wide as high.
func textEnds(t *testing.T, e element) []point {
	t.Helper()
	size := 12.0
	if e.of["font-size"] != "" {
		size = e.number(t, "font-size")
	}
	x, y, long := e.number(t, "x"), e.number(t, "y"), 0.6*size*float64(len(e.text))
	switch e.of["text-anchor"] {
	case "end":
		x -= long
	case "middle":
		x -= long / 2
	}
	return []point{{x, y - size}, {x + long, y}}
}
