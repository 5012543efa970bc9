// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording is what a series of runs of the benchmark leaves on disk, and what docs/performance.md is made from. Times are
// in seconds and memory is in MiB.
package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Milestones that every MCPServer reaches, counted from before the first of them is created.
const (
	ChildrenExist = "children exist"
	ProxiesReady  = "proxies ready"
	ServersReady  = "MCPServers Ready"
)

// Stages of a run.
const (
	Create  = "create"
	Idle    = "idle"
	Label   = "label"
	Image   = "image"
	Scale   = "scale"
	Config  = "config"
	Restart = "restart"
	Delete  = "delete"
)

// Processes whose CPU time is recorded.
const (
	Operator          = "operator"
	APIServer         = "kube-apiserver"
	Etcd              = "etcd"
	ControllerManager = "kube-controller-manager"
)

// Recording is a series of runs on one machine, ordered by their numbers of MCPServers, by how many of these a namespace has, and then by
// later releases of ToolHive.
type Recording struct {
	Machine Machine
	Runs    []Run
}

// PerNamespace is how many MCPServers a namespace has in the runs that the documentation is about.
const PerNamespace = 20

// Has reports whether there is a run with that many MCPServers, of which a namespace has as many, beside the machine's release of ToolHive.
func (r *Recording) Has(servers, perNamespace int) bool {
	_, found := r.find(Run{Servers: servers, PerNamespace: perNamespace})
	return found
}

func (r *Recording) find(run Run) (at int, found bool) {
	return slices.BinarySearchFunc(r.Runs, run, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Servers, b.Servers), cmp.Compare(a.PerNamespace, b.PerNamespace), cmp.Compare(a.Later, b.Later))
	})
}

// Of returns the runs in which a namespace has that many MCPServers, without those beside a later release of ToolHive.
func (r *Recording) Of(perNamespace int) *Recording { return r.Beside("", perNamespace) }

// Beside returns the runs beside a later release of ToolHive in which a namespace has that many MCPServers.
func (r *Recording) Beside(later string, perNamespace int) *Recording {
	runs := slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return run.Later != later || run.PerNamespace != perNamespace })
	return &Recording{Machine: r.Machine, Runs: runs}
}

// Add adds a run in place of one with as many MCPServers, of which a namespace has as many, beside the same release of ToolHive.
func (r *Recording) Add(run Run) {
	i, found := r.find(run)
	if found {
		r.Runs[i] = run
		return
	}
	r.Runs = slices.Insert(r.Runs, i, run)
}

// Continue reads the recording in a file, to add runs on a machine to it. Without such a file, and if its runs took place on another
// machine or with other releases, it returns an empty recording for this machine. ToolHive's release counts only if there is one on both
// sides: runs with its operator, runs without it and runs beside a later one are in the same recording.
func Continue(path string, machine Machine) (*Recording, error) {
	r, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Recording{Machine: machine}, nil
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.Runs, func(run Run) bool { return run.ToolHive != nil && run.Later == "" }) {
		r.Machine.ToolHive = ""
	}
	here := machine
	here.ToolHive = cmp.Or(machine.ToolHive, r.Machine.ToolHive)
	r.Machine.ToolHive = cmp.Or(r.Machine.ToolHive, machine.ToolHive)
	if r.Machine != here {
		return &Recording{Machine: machine}, nil
	}
	return r, nil
}

// Machine describes where the runs took place.
type Machine struct {
	CPUs      int
	CPUModel  string
	MemoryMiB int
	Kernel    string
	Go        string
	// Kubernetes, Etcd and ToolHive are the releases that ran; see Run.Later for another of ToolHive.
	Kubernetes, Etcd, ToolHive string
}

// Run is one run with a number of MCPServers.
type Run struct {
	// Commit is the checkout that Freehold was built from.
	Commit                   string
	Servers, Rounds, Workers int
	// PerNamespace is how many of the MCPServers a namespace has; 0 for all in one.
	PerNamespace int `json:",omitempty"`
	// Later is a later release of ToolHive that ran in place of the machine's, beside played proxyrunners; empty if none did.
	Later string `json:",omitempty"`
	// LoadBefore and LoadAfter are the machine's load averages over a minute.
	LoadBefore, LoadAfter float64
	// Took is how long the run lasted.
	Took float64
	// Raw is the program that only sends the writes; it has milestones and answers, and an idle time after its end.
	Raw, Freehold Subject
	// ToolHive is nil if the run left its operator out.
	ToolHive *Subject `json:",omitempty"`
}

// Subject is what a program did and used in one run. Values of repeated measurements are medians.
type Subject struct {
	// Children is how many objects it creates for an MCPServer.
	Children int
	// Milestones by their names.
	Milestones map[string]float64
	// Stages by their names.
	Stages map[string]Stage `json:",omitempty"`
	// Answers are the times from an edit by hand to the answer, by the names of stages.
	Answers map[string]Answers `json:",omitempty"`
	// LabelsLeft is how many of the foreign labels stayed.
	LabelsLeft int
}

// Stage is what an operator did and used in one part of a run.
type Stage struct {
	// Took is how long it took where it ends by itself; 0 elsewhere.
	Took float64
	// CPU by process.
	CPU map[string]float64
	// PeakMiB and SettledMiB are the operator's largest resident set, and that at the end.
	PeakMiB, SettledMiB float64
	// Writes by verb and resource, such as "apply deployments" and "update mcpservers/status".
	Writes map[string]int
	// Refused is how many writes the API server did not accept.
	Refused int
}

// Total is the number of all writes.
func (s Stage) Total() (total int) {
	for _, n := range s.Writes {
		total += n
	}
	return total
}

// Answers summarizes how long the answers to edits took.
type Answers struct {
	// Edits is how many were made at once.
	Edits int
	// Named is how many were reported as a conflict, and Undone is how many were overwritten.
	Named, Undone int
	P50, P99, Max float64
}

// Summarize computes the percentiles of times.
func Summarize(times []time.Duration) (a Answers) {
	a.Edits = len(times)
	a.P50, a.P99, a.Max = Percentile(times, 50).Seconds(), Percentile(times, 99).Seconds(), Percentile(times, 100).Seconds()
	return a
}

// Percentile returns the smallest time that at least p percent of the times do not exceed; 0 for no times.
func Percentile(times []time.Duration, p float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// Read reads a recording.
func Read(path string) (*Recording, error) { return read[Recording](path) }

// Write writes a recording, with numbers rounded to what the measurement can tell.
func (r *Recording) Write(path string) error { return writeFile(path, r.rounded()) }

func read[T any](path string) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	content := new(T)
	if err := decoder.Decode(content); err != nil {
		return nil, fmt.Errorf("cannot read the recording %s: %w", path, err)
	}
	return content, nil
}

// writeFile writes JSON. Who reads the file meanwhile, or ends the program, has either the former content or this one.
func writeFile(path string, content any) error {
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".*-"+filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (r *Recording) rounded() *Recording {
	rounded := &Recording{Machine: r.Machine}
	for _, run := range r.Runs {
		run.LoadBefore, run.LoadAfter, run.Took = round(run.LoadBefore), round(run.LoadAfter), round(run.Took)
		run.Raw, run.Freehold = run.Raw.rounded(), run.Freehold.rounded()
		if run.ToolHive != nil {
			theirs := run.ToolHive.rounded()
			run.ToolHive = &theirs
		}
		rounded.Runs = append(rounded.Runs, run)
	}
	return rounded
}

func (s Subject) rounded() Subject {
	s.Milestones = roundAll(s.Milestones)
	stages, answers := map[string]Stage{}, map[string]Answers{}
	for name, stage := range s.Stages {
		stage.Took, stage.PeakMiB, stage.SettledMiB = round(stage.Took), round(stage.PeakMiB), round(stage.SettledMiB)
		stage.CPU = roundAll(stage.CPU)
		stages[name] = stage
	}
	for name, times := range s.Answers {
		times.P50, times.P99, times.Max = round(times.P50), round(times.P99), round(times.Max)
		answers[name] = times
	}
	s.Stages, s.Answers = stages, answers
	return s
}

func roundAll(numbers map[string]float64) map[string]float64 {
	rounded := map[string]float64{}
	for name, number := range numbers {
		rounded[name] = round(number)
	}
	return rounded
}

// round keeps thousandths: clocks and counters of CPU time tell no more.
func round(number float64) float64 { return math.Round(number*1000) / 1000 }
