// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// The programs, as tables and plots name them.
const (
	raw      = "raw applier"
	freehold = "Freehold"
	toolHive = "ToolHive's operator"
)

// measure is something that was measured of a program in each run. It is NaN where it was not.
type measure func(recording.Run, *recording.Subject) float64

// subject returns what a program did in a run; nil if it was left out.
func subject(run recording.Run, program string) *recording.Subject {
	switch program {
	case raw:
		return &run.Raw
	case freehold:
		return &run.Freehold
	default:
		return run.ToolHive
	}
}

// value is a measure of a program in a run.
func value(run recording.Run, program string, of measure) float64 {
	s := subject(run, program)
	if s == nil {
		return math.NaN()
	}
	return of(run, s)
}

func milestone(name string) measure {
	return func(_ recording.Run, s *recording.Subject) float64 { return found(s.Milestones, name) }
}

// stage is a measure of a stage.
func stage(name string, of func(recording.Run, recording.Stage) float64) measure {
	return func(run recording.Run, s *recording.Subject) float64 {
		if done, ok := s.Stages[name]; ok {
			return of(run, done)
		}
		return math.NaN()
	}
}

func took(_ recording.Run, s recording.Stage) float64 { return s.Took }

func cpu(process string) func(recording.Run, recording.Stage) float64 {
	return func(_ recording.Run, s recording.Stage) float64 { return found(s.CPU, process) }
}

// perMinute is the CPU time of a process in a minute of a stage.
func perMinute(process string) func(recording.Run, recording.Stage) float64 {
	return func(_ recording.Run, s recording.Stage) float64 { return found(s.CPU, process) / s.Took * 60 }
}

// perThousandRestarted is the CPU time of a process at a restart, for each 1,000 MCPServers that there are then: those of the run, and those
// that were made to have their Deployments scaled by hand.
func perThousandRestarted(process string) measure {
	return func(run recording.Run, s *recording.Subject) float64 {
		used := stage(recording.Restart, cpu(process))(run, s)
		return used / float64(run.Servers+s.Answers[recording.Scale].Edits) * 1000
	}
}

// planeCPU is the CPU time of the control plane.
func planeCPU(_ recording.Run, s recording.Stage) float64 {
	return found(s.CPU, recording.APIServer) + found(s.CPU, recording.Etcd) + found(s.CPU, recording.ControllerManager)
}

func settled(_ recording.Run, s recording.Stage) float64 { return s.SettledMiB }

func total(_ recording.Run, s recording.Stage) float64 { return float64(s.Total()) }

func perServer(run recording.Run, s recording.Stage) float64 {
	return float64(s.Total()) / float64(run.Servers)
}

func refused(_ recording.Run, s recording.Stage) float64 { return float64(s.Refused) }

// peak is the largest resident set of all stages.
func peak(_ recording.Run, s *recording.Subject) (highest float64) {
	if len(s.Stages) == 0 {
		return math.NaN()
	}
	for _, done := range s.Stages {
		highest = max(highest, done.PeakMiB)
	}
	return highest
}

func answer(name string, of func(recording.Answers) float64) measure {
	return func(_ recording.Run, s *recording.Subject) float64 {
		if times, ok := s.Answers[name]; ok {
			return of(times)
		}
		return math.NaN()
	}
}

func p50(a recording.Answers) float64 { return a.P50 }

func p99(a recording.Answers) float64 { return a.P99 }

// perEdit is the number of writes for an edit by hand.
func perEdit(name string) measure {
	return func(_ recording.Run, s *recording.Subject) float64 {
		done, ok := s.Stages[name]
		if edits := s.Answers[name].Edits; ok && edits > 0 {
			return float64(done.Total()) / float64(edits)
		}
		return math.NaN()
	}
}

func found(numbers map[string]float64, name string) float64 {
	if number, ok := numbers[name]; ok {
		return number
	}
	return math.NaN()
}

// row is a line of a table with a column for each run.
type row struct {
	what, program string
	of            measure
	// against is the program whose value is the divisor, if the row is a ratio.
	against string
	// digits after the decimal point.
	digits int
}

// compared are rows for programs, and for the ratios of the later ones to the first.
func compared(what string, of measure, digits int, programs ...string) (rows []row) {
	for _, program := range programs {
		rows = append(rows, row{what: what, program: program, of: of, digits: digits})
		what = ""
	}
	for _, program := range programs[1:] {
		rows = append(rows, row{program: program, against: programs[0], of: of, digits: 2})
	}
	return rows
}

// each are rows for programs, without ratios.
func each(what string, of measure, digits int, programs ...string) (rows []row) {
	for _, program := range programs {
		rows = append(rows, row{what: what, program: program, of: of, digits: digits})
		what = ""
	}
	return rows
}

// table writes rows, and leaves out those that no run has a value for.
func table(r *recording.Recording, rows ...[]row) string {
	var b strings.Builder
	b.WriteString("| | MCPServers: |")
	for _, run := range r.Runs {
		fmt.Fprintf(&b, " %d |", run.Servers)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(r.Runs)) + "\n")
	pending := ""
	for _, w := range slices.Concat(rows...) {
		if w.what != "" {
			pending = w.what
		}
		cells, some := w.cells(r)
		if !some {
			continue
		}
		name := w.program
		if w.against != "" {
			name += " / " + w.against
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", pending, name, strings.Join(cells, " | "))
		pending = ""
	}
	return b.String()
}

func (w row) cells(r *recording.Recording) (cells []string, some bool) {
	for _, run := range r.Runs {
		v := value(run, w.program, w.of)
		if w.against != "" {
			v /= value(run, w.against, w.of)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			cells = append(cells, "")
			continue
		}
		cells, some = append(cells, number(v, w.digits)), true
	}
	return cells, some
}

// number formats a value; a whole one has no decimals.
func number(v float64, digits int) string {
	if v == math.Trunc(v) && digits == 1 {
		digits = 0
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// tables returns all tables, by the names of their places.
func tables(r *recording.Recording) map[string]string {
	operators := []string{freehold, toolHive}
	return map[string]string{
		"machine": machine(r),
		"runs":    runs(r),
		"times": table(r,
			compared("seconds until all children exist", milestone(recording.ChildrenExist), 1, raw, freehold, toolHive),
			compared("seconds until all proxies are ready", milestone(recording.ProxiesReady), 1, raw, freehold, toolHive),
			compared("seconds until all MCPServers are Ready", milestone(recording.ServersReady), 1, freehold, toolHive)),
		"cpu": table(r,
			compared("the operator", stage(recording.Create, cpu(recording.Operator)), 1, operators...),
			compared("kube-apiserver", stage(recording.Create, cpu(recording.APIServer)), 1, operators...),
			compared("etcd", stage(recording.Create, cpu(recording.Etcd)), 1, operators...),
			compared("kube-controller-manager", stage(recording.Create, cpu(recording.ControllerManager)), 1, operators...)),
		"memory": table(r,
			compared("settled, after the idle time", stage(recording.Idle, settled), 0, operators...),
			compared("peak of all measurements", peak, 0, operators...)),
		"writes": table(r,
			each("creation, for each MCPServer", stage(recording.Create, perServer), 1, operators...),
			each("of all these, refused", stage(recording.Create, refused), 0, operators...),
			each("the idle time, all together", stage(recording.Idle, total), 0, operators...),
			each("a foreign label on each Deployment, all together", stage(recording.Label, total), 0, operators...),
			each("foreign labels that stay", func(_ recording.Run, s *recording.Subject) float64 {
				if len(s.Stages) == 0 {
					return math.NaN()
				}
				return float64(s.LabelsLeft)
			}, 0, operators...),
			each("an image edited by hand, for each edit", perEdit(recording.Image), 1, operators...),
			each("a Deployment scaled by hand, for each", perEdit(recording.Scale), 1, operators...),
			each("a restart, all together", stage(recording.Restart, total), 0, operators...),
			each("the edit of the MCPOIDCConfig, for each MCPServer", stage(recording.Config, perServer), 1, operators...),
			each("deletion, for each MCPServer", stage(recording.Delete, perServer), 1, operators...)),
		"kinds": kinds(largest(r)),
		"requests": table(r,
			each("CPU seconds of kube-apiserver in an idle minute", stage(recording.Idle, perMinute(recording.APIServer)), 2, raw, freehold, toolHive),
			each("CPU seconds of etcd in an idle minute", stage(recording.Idle, perMinute(recording.Etcd)), 2, raw, freehold, toolHive),
			compared("CPU seconds of kube-apiserver for a restart of the operator", stage(recording.Restart, cpu(recording.APIServer)), 2, operators...),
			compared("the same for each 1,000 MCPServers", perThousandRestarted(recording.APIServer), 2, operators...)),
		"edits": table(r,
			each("images edited at once", answer(recording.Image, func(a recording.Answers) float64 { return float64(a.Edits) }), 0, freehold),
			each("reported as a conflict", answer(recording.Image, func(a recording.Answers) float64 { return float64(a.Named) }), 0, raw, freehold, toolHive),
			each("overwritten", answer(recording.Image, func(a recording.Answers) float64 { return float64(a.Undone) }), 0, freehold, toolHive),
			compared("seconds until the answer, p50", answer(recording.Image, p50), 2, raw, freehold, toolHive),
			compared("seconds until the answer, p99", answer(recording.Image, p99), 2, raw, freehold, toolHive),
			compared("seconds until a scaled Deployment has one replica again, p50", answer(recording.Scale, p50), 2, operators...),
			compared("seconds until a scaled Deployment has one replica again, p99", answer(recording.Scale, p99), 2, operators...)),
		"changes": table(r,
			compared("seconds of a restart until quiet", stage(recording.Restart, took), 1, operators...),
			compared("CPU seconds of the operator for it", stage(recording.Restart, cpu(recording.Operator)), 1, operators...),
			compared("seconds until the edit of the MCPOIDCConfig is rolled out", stage(recording.Config, took), 1, operators...),
			compared("CPU seconds of the operator for it", stage(recording.Config, cpu(recording.Operator)), 1, operators...),
			compared("seconds until all are deleted", stage(recording.Delete, took), 1, operators...),
			compared("CPU seconds of the operator for it", stage(recording.Delete, cpu(recording.Operator)), 1, operators...)),
	}
}

// machine describes where the runs took place.
func machine(r *recording.Recording) string {
	m := r.Machine
	rows := [][2]string{
		{"Processors", fmt.Sprintf("%d, %s", m.CPUs, m.CPUModel)},
		{"Memory", fmt.Sprintf("%.1f GiB", float64(m.MemoryMiB)/1024)},
		{"Linux", m.Kernel},
		{"Go", m.Go},
		{"Kubernetes", m.Kubernetes},
		{"etcd", m.Etcd},
	}
	if m.ToolHive != "" {
		rows = append(rows, [2]string{toolHive, m.ToolHive})
	}
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, cells := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", cells[0], cells[1])
	}
	return b.String()
}

// runs describes the runs.
func runs(r *recording.Recording) string {
	var b strings.Builder
	b.WriteString("| MCPServers | Commit | Rounds | Workers | Load before | Load after | Took |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, run := range r.Runs {
		fmt.Fprintf(&b, "| %d | %s | %d | %d | %.1f | %.1f | %.0f min |\n",
			run.Servers, run.Commit, run.Rounds, run.Workers, run.LoadBefore, run.LoadAfter, run.Took/60)
	}
	return b.String()
}

// largest returns the largest run that did not leave ToolHive's operator out, and the largest of all if each did.
func largest(r *recording.Recording) recording.Run {
	for _, run := range slices.Backward(r.Runs) {
		if run.ToolHive != nil {
			return run
		}
	}
	return r.Runs[len(r.Runs)-1]
}

// kinds lists the writes of the creation in a run, by verb and resource.
func kinds(run recording.Run) string {
	programs := []string{freehold}
	names := map[string]bool{}
	if run.ToolHive != nil {
		programs = append(programs, toolHive)
	}
	for _, program := range programs {
		for name := range subject(run, program).Stages[recording.Create].Writes {
			names[name] = true
		}
	}
	var b strings.Builder
	b.WriteString("| Verb and resource | " + strings.Join(programs, " | ") + " |\n|---|" + strings.Repeat("---:|", len(programs)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b.WriteString("| " + name + " |")
		for _, program := range programs {
			n := subject(run, program).Stages[recording.Create].Writes[name]
			fmt.Fprintf(&b, " %s |", number(float64(n)/float64(run.Servers), 1))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// soaked describes a run of the soak, and what it found.
func soaked(s *recording.Soak) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The recorded run had %d MCPServers and the seed %d, at commit %s, with Kubernetes %s on %d processors (%s) and %.1f GiB. "+
		"Its churn lasted %.0f min of %.0f.", s.Servers, s.Seed, s.Commit, s.Machine.Kubernetes, s.Machine.CPUs, s.Machine.CPUModel,
		float64(s.Machine.MemoryMiB)/1024, s.Churn/60, s.Took/60)
	if s.Remark != "" {
		b.WriteString(" " + s.Remark)
	}
	b.WriteString("\n\n| What | Result |\n|---|---|\n")
	for _, result := range s.Results {
		what := result.What
		if result.Failed {
			what = "**Failed:** " + what
		}
		// A list of findings has a line for each, which a cell has no room for.
		fmt.Fprintf(&b, "| %s | %s |\n", what, strings.Join(strings.Fields(result.Found), " "))
	}
	return b.String()
}
