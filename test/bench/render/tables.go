// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

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

// planeCPU is the CPU time of the control plane.
func planeCPU(_ recording.Run, s recording.Stage) float64 {
	return found(s.CPU, recording.APIServer) + found(s.CPU, recording.Etcd) + found(s.CPU, recording.ControllerManager)
}

func settled(_ recording.Run, s recording.Stage) float64 { return s.SettledMiB }

func total(_ recording.Run, s recording.Stage) float64 { return float64(s.Total()) }

func perServer(run recording.Run, s recording.Stage) float64 {
	return float64(s.Total()) / float64(run.Servers)
}

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

// shown returns the runs that tables and plots show: those whose MCPServers are spread over namespaces or, while there are none, those
// that have all in one.
func shown(r *recording.Recording) *recording.Recording {
	if spread := r.Of(recording.PerNamespace); len(spread.Runs) > 0 {
		return spread
	}
	return r.Of(0)
}

// row is a line of a table: something that was measured of each program.
type row struct {
	what string
	of   measure
	// digits after the decimal point.
	digits int
}

// column is a program in a run.
type column struct {
	run     recording.Run
	program string
}

// columns are the programs in the smallest run, and in the largest that did not leave ToolHive's operator out. The plots have the runs between.
func columns(r *recording.Recording, programs ...string) (found []column) {
	smallest, last := r.Runs[0], largest(r)
	for _, program := range programs {
		found = append(found, column{smallest, program})
	}
	if last.Servers == smallest.Servers {
		return found
	}
	for _, program := range programs {
		found = append(found, column{last, program})
	}
	return found
}

// table writes rows. It leaves out columns that have no value.
func table(columns []column, rows ...row) string {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { // Several tables share them.
		return !slices.ContainsFunc(rows, func(w row) bool { return w.cell(c) != "" })
	})
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s, %d |", c.program, c.run.Servers)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, w := range rows {
		b.WriteString("| " + w.what + " |")
		for _, c := range columns {
			b.WriteString(strings.TrimRight(" "+w.cell(c), " ") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cell is the value of a column, and empty where it was not measured.
func (w row) cell(c column) string {
	v := value(c.run, c.program, w.of)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return number(v, w.digits)
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
	all, operators := columns(shown(r), raw, freehold, toolHive), columns(shown(r), freehold, toolHive)
	return map[string]string{
		"machine": machine(r),
		"runs":    runs(r),
		"growth":  growth(r),
		"one":     inOne(r),
		"later":   later(r),
		"times": table(all,
			row{"seconds until all children exist", milestone(recording.ChildrenExist), 1},
			row{"seconds until all proxies are ready", milestone(recording.ProxiesReady), 1},
			row{"seconds until all MCPServers are Ready", milestone(recording.ServersReady), 1}),
		"cpu": table(operators,
			row{"the operator", stage(recording.Create, cpu(recording.Operator)), 1},
			row{"kube-apiserver", stage(recording.Create, cpu(recording.APIServer)), 1},
			row{"etcd", stage(recording.Create, cpu(recording.Etcd)), 1},
			row{"kube-controller-manager", stage(recording.Create, cpu(recording.ControllerManager)), 1}),
		"memory": table(operators,
			row{"at rest", stage(recording.Idle, settled), 0},
			row{"peak", peak, 0}),
		"writes": table(operators,
			row{"creation, for each MCPServer", stage(recording.Create, perServer), 1},
			row{"the idle time, in all", stage(recording.Idle, total), 0},
			row{"a foreign label on each Deployment, in all", stage(recording.Label, total), 0},
			row{"(foreign labels that stay)", func(_ recording.Run, s *recording.Subject) float64 {
				if len(s.Stages) == 0 {
					return math.NaN()
				}
				return float64(s.LabelsLeft)
			}, 0},
			row{"an image edited by hand, for each", perEdit(recording.Image), 1},
			row{"a Deployment scaled by hand, for each", perEdit(recording.Scale), 1},
			row{"a restart, in all", stage(recording.Restart, total), 0},
			row{"an MCPOIDCConfig edited, for each MCPServer", stage(recording.Config, perServer), 1},
			row{"deletion, for each MCPServer", stage(recording.Delete, perServer), 1}),
		"edits": table(operators,
			row{"seconds until the answer, p99", answer(recording.Image, p99), 1},
			row{"seconds until the number is reset, p99", answer(recording.Scale, p99), 1}),
		"changes": table(operators,
			row{"idle minute: CPU of kube-apiserver", stage(recording.Idle, perMinute(recording.APIServer)), 1},
			row{"restart: CPU of kube-apiserver", stage(recording.Restart, cpu(recording.APIServer)), 1},
			row{"restart: CPU seconds", stage(recording.Restart, cpu(recording.Operator)), 1},
			row{"restart: seconds until quiet", stage(recording.Restart, took), 1},
			row{"MCPOIDCConfig: seconds until rolled out", stage(recording.Config, took), 1},
			row{"MCPOIDCConfig: CPU seconds", stage(recording.Config, cpu(recording.Operator)), 1},
			row{"deletion: seconds", stage(recording.Delete, took), 1},
			row{"deletion: CPU seconds", stage(recording.Delete, cpu(recording.Operator)), 1}),
	}
}

// inOne is a section about the runs with all MCPServers in one namespace. It is empty if the other tables show those, or if there are none.
func inOne(r *recording.Recording) string {
	one := r.Of(0)
	if len(one.Runs) == 0 || shown(r).Runs[0].PerNamespace == 0 {
		return ""
	}
	return "## All in one namespace\n\n" + table(columns(one, freehold, toolHive),
		row{"creation: seconds until all MCPServers are Ready", milestone(recording.ServersReady), 1},
		row{"creation: CPU seconds of the operator", stage(recording.Create, cpu(recording.Operator)), 1},
		row{"creation: CPU seconds of kube-controller-manager", stage(recording.Create, cpu(recording.ControllerManager)), 1},
		row{"MCPOIDCConfig: seconds until rolled out", stage(recording.Config, took), 1},
		row{"deletion: seconds", stage(recording.Delete, took), 1})
}

// later is a section about the runs beside the latest of the later releases of ToolHive, with MCPServers spread over namespaces. It is
// empty if there are none.
func later(r *recording.Recording) string {
	release := ""
	for _, run := range r.Runs {
		if run.PerNamespace == recording.PerNamespace && (release == "" || run.Later != "" &&
			version.MustParseSemantic(run.Later).GreaterThan(version.MustParseSemantic(release))) {
			release = run.Later
		}
	}
	if release == "" {
		return ""
	}
	return "## Beside ToolHive " + release + "\n\n" + table(columns(r.Beside(release, recording.PerNamespace), freehold, "ToolHive "+release),
		row{"seconds until all MCPServers are Ready", milestone(recording.ServersReady), 1},
		row{"creation: CPU seconds", stage(recording.Create, cpu(recording.Operator)), 1},
		row{"creation: writes for each MCPServer", stage(recording.Create, perServer), 1},
		row{"MCPOIDCConfig: CPU seconds", stage(recording.Config, cpu(recording.Operator)), 1},
		row{"restart: CPU seconds", stage(recording.Restart, cpu(recording.Operator)), 1},
		row{"deletion: seconds", stage(recording.Delete, took), 1},
		row{"deletion: CPU seconds", stage(recording.Delete, cpu(recording.Operator)), 1},
		row{"peak of memory, MiB", peak, 0})
}

// machine describes where the runs took place.
func machine(r *recording.Recording) string {
	m := r.Machine
	text := fmt.Sprintf("%d processors (%s), %.1f GiB, Linux %s, Go %s, Kubernetes %s, etcd %s",
		m.CPUs, m.CPUModel, float64(m.MemoryMiB)/1024, m.Kernel, m.Go, m.Kubernetes, m.Etcd)
	if m.ToolHive != "" {
		text += ", " + toolHive + " " + m.ToolHive
	}
	return text + ".\n"
}

// runs describes the runs. It tells how many MCPServers a namespace has if that is not all of them in each run, and later releases of
// ToolHive if there are some.
func runs(r *recording.Recording) string {
	var b strings.Builder
	cellIf := func(told func(recording.Run) bool) func(string) string {
		if !slices.ContainsFunc(r.Runs, told) {
			return func(string) string { return "" }
		}
		return func(cell string) string { return cell + "|" }
	}
	second := cellIf(func(run recording.Run) bool { return run.PerNamespace > 0 })
	third := cellIf(func(run recording.Run) bool { return run.Later != "" })
	b.WriteString("| MCPServers |" + second(" In a namespace ") + third(" ToolHive ") + " Commit | Rounds | Load before, after | Took |\n")
	b.WriteString("|---:|" + second("---:") + third("---") + "---|---:|---:|---:|\n")
	for _, run := range r.Runs {
		number := "all"
		if run.PerNamespace > 0 {
			number = strconv.Itoa(run.PerNamespace)
		}
		fmt.Fprintf(&b, "| %d |%s%s %s | %d | %.1f, %.1f | %.0f min |\n",
			run.Servers, second(" "+number+" "), third(" "+toolHiveOf(r, run)+" "), run.Commit, run.Rounds, run.LoadBefore, run.LoadAfter, run.Took/60)
	}
	return b.String()
}

// toolHiveOf is the release of ToolHive in a run; empty if its operator was left out.
func toolHiveOf(r *recording.Recording, run recording.Run) string {
	if run.ToolHive == nil {
		return ""
	}
	return cmp.Or(run.Later, r.Machine.ToolHive)
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

// soaked describes a run of the soak, and what it found.
func soaked(s *recording.Soak) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d MCPServers, seed %d, commit %s, Kubernetes %s, %d processors (%s), %.1f GiB; churn for %.0f min of %.0f.",
		s.Servers, s.Seed, s.Commit, s.Machine.Kubernetes, s.Machine.CPUs, s.Machine.CPUModel,
		float64(s.Machine.MemoryMiB)/1024, s.Churn/60, s.Took/60)
	if s.Remark != "" {
		b.WriteString("\n" + s.Remark)
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
