// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

// describeMachine describes the machine that the program runs on, and the releases of what it measures.
func describeMachine(toolhive bool) (m recording.Machine, err error) {
	m.CPUs, m.Go = runtime.NumCPU(), strings.TrimPrefix(runtime.Version(), "go")
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m, fmt.Errorf("cannot describe the machine: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return m, fmt.Errorf("cannot tell the memory: %w", err)
	}
	if memory.MemTotalBytes != nil {
		m.MemoryMiB = int(*memory.MemTotalBytes >> 20)
	}
	processors, err := fs.CPUInfo()
	if err != nil {
		return m, fmt.Errorf("cannot tell the processors: %w", err)
	}
	if len(processors) > 0 {
		m.CPUModel = processors[0].ModelName
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, err
	}
	// What a distribution or a provider adds to the release is of no use to a reader.
	m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(kernel)), "-")
	releases := map[binaries.Tool]*string{binaries.KubeAPIServer: &m.Kubernetes, binaries.Etcd: &m.Etcd}
	if toolhive {
		releases[binaries.ToolHiveOperator] = &m.ToolHive
	}
	for tool, release := range releases {
		if *release, err = binaries.Version(tool); err != nil {
			return m, err
		}
	}
	return m, nil
}
