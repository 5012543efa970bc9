// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// use is what a process has used.
type use struct {
	// PeakMiB is the largest resident set, in MiB.
	PeakMiB float64
	// ResidentMiB is the resident set at the end, in MiB.
	ResidentMiB float64
	// CPU time of user and system.
	CPU time.Duration
}

// meter measures what a process uses from now on.
type meter struct {
	process procfs.Proc
	began   time.Duration
}

// newMeter fails where there is no /proc.
func newMeter(pid int) (*meter, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil, fmt.Errorf("cannot measure the operator: %w", err)
	}
	m := &meter{process: process}
	// This makes the kernel forget the peak (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return nil, fmt.Errorf("cannot reset the peak of memory: %w", err)
	}
	m.began, err = m.cpu()
	return m, err
}

func (m *meter) cpu() (time.Duration, error) {
	stat, err := m.process.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// read tells what was used since the meter was made.
func (m *meter) read() (u use, err error) {
	if u.CPU, err = m.cpu(); err != nil {
		return u, fmt.Errorf("cannot measure the operator: %w", err)
	}
	u.CPU -= m.began
	status, err := m.process.NewStatus()
	if err != nil {
		return u, fmt.Errorf("cannot measure the operator: %w", err)
	}
	u.PeakMiB, u.ResidentMiB = mebibytes(status.VmHWM), mebibytes(status.VmRSS)
	return u, nil
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// cpuTimes returns the CPU time that processes have used up to now.
func cpuTimes(pids map[cluster.Component]int) (map[cluster.Component]time.Duration, error) {
	times := map[cluster.Component]time.Duration{}
	for component, pid := range pids {
		process, err := procfs.NewProc(pid)
		if err == nil {
			times[component], err = (&meter{process: process}).cpu()
		}
		if err != nil {
			return nil, fmt.Errorf("cannot measure %s: %w", component, err)
		}
	}
	return times, nil
}

// loadAverage is the number of processes that have wanted a CPU in the last minute; 0 where the system does not
// tell. Other work on the machine makes times longer, and ratios less certain.
func loadAverage() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0
	}
	return load.Load1
}

// useSinceStart returns what a process has used since it was started.
func useSinceStart(pid int) (use, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return use{}, fmt.Errorf("cannot measure the operator: %w", err)
	}
	return (&meter{process: process}).read()
}
