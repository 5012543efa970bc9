// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// keptMessages is how many lines of compiler output an error shows.
const keptMessages = 30

// buildStatus reads the output of "go build -v" and knows how far the build is.
type buildStatus struct {
	begin time.Time

	mu sync.Mutex
	// partial is the beginning of a line whose end has not been written yet.
	partial string
	// compiled is the number of packages that were not in Go's build cache and have been started.
	compiled int
	// total is the number of packages that the program consists of. Zero: not known.
	total int
	// downloading is the module that is being fetched, empty after the first compiled package.
	downloading string
	lines       []string
}

// Write takes output of the go command.
func (s *buildStatus) Write(output []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.partial+string(output), "\n")
	s.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		s.line(strings.TrimSpace(line))
	}
	return len(output), nil
}

func (s *buildStatus) line(line string) {
	module, downloading := strings.CutPrefix(line, "go: downloading ")
	switch {
	case line == "":
	case downloading:
		s.downloading = module
	case !strings.ContainsAny(line, " :"):
		// Import paths have neither; every message of the go command and the compiler has one.
		s.downloading = ""
		s.compiled++
	default:
		s.lines = append(s.lines, line)
		if extra := len(s.lines) - keptMessages; extra > 0 {
			s.lines = slices.Delete(s.lines, 0, extra)
		}
	}
}

func (s *buildStatus) setTotal(packages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = packages
}

// messages returns the last lines that are neither progress nor package names.
func (s *buildStatus) messages() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(append(slices.Clone(s.lines), s.partial), "\n")
}

// String says in a few words how far the build is.
func (s *buildStatus) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var step string
	switch {
	case s.downloading != "":
		step = "downloading " + s.downloading
	case s.compiled == 0:
		step = "linking, or reading Go's build cache"
	case s.total == 0:
		step = fmt.Sprintf("%d packages compiled", s.compiled)
	default:
		step = fmt.Sprintf("%d of up to %d packages compiled", s.compiled, s.total)
	}
	return fmt.Sprintf("%s, %s", step, elapsedSince(s.begin))
}
