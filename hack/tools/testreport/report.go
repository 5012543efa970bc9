// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json (see go doc test2json and go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// test names one test, or with an empty name a package.
type test struct {
	pkg, name string
}

// long is from how many seconds on a passed test is mentioned, so that one sees a suite of long ones move on.
const long = 10

// report turns events into text.
type report struct {
	details io.Writer
	lines   io.Writer
	// output is the output of tests that have not ended yet, and of packages that do not build.
	output map[test][]string
	// skipped are the lines about skipped tests, and failed those about failed ones, by package.
	skipped, failed map[string][]string

	passes, failures, skips, packages, failedPackages int
}

func newReport(details, lines io.Writer) *report {
	return &report{
		details: details, lines: lines,
		output: map[test][]string{}, skipped: map[string][]string{}, failed: map[string][]string{},
	}
}

func (r *report) read(events io.Reader) error {
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				// go itself says something, such as that a pattern matches nothing.
				fmt.Fprint(r.details, line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.details, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.output, key)
	}
}

// said matches lines that a test itself writes in its own file, not those that the code under test logs through it.
var said = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

const (
	// lastSaid is how many of the lines that a failed test said are repeated in the summary: the error is one of the last.
	lastSaid = 8
	// widest is how many bytes of such a line are.
	widest = 600
)

// whyFailed returns lines that say, in the summary, which test failed and what it said last: all that it wrote may be
// thousands of lines above.
func whyFailed(name string, output []string) []string {
	var why []string
	for _, line := range output {
		if said.MatchString(line) {
			line = strings.TrimSpace(line)
			why = append(why, "          "+line[:min(len(line), widest)]+"\n")
		}
	}
	return append([]string{"        failed " + name + "\n"}, why[max(0, len(why)-lastSaid):]...)
}

// resultLine matches the line that go test writes when a test ends; its place and time say nothing here.
var resultLine = regexp.MustCompile(`^\s*(===|---) `)

func (r *report) endTest(e event) {
	lines := r.output[test{e.Package, e.Test}]
	topLevel := !strings.Contains(e.Test, "/")
	switch e.Action {
	case "pass":
		if topLevel {
			r.passes++
			if e.Elapsed >= long {
				fmt.Fprintf(r.details, "        %s took %.0f s\n", e.Test, e.Elapsed)
			}
		}
	case "fail":
		if topLevel {
			r.failures++
		}
		for _, line := range lines {
			if !strings.HasPrefix(strings.TrimSpace(line), "=== ") {
				fmt.Fprint(r.details, line)
			}
		}
		r.failed[e.Package] = append(r.failed[e.Package], whyFailed(e.Test, lines)...)
	case "skip":
		r.skips++
		var why []string
		for _, line := range lines {
			if text := strings.TrimSpace(line); text != "" && !resultLine.MatchString(line) {
				why = append(why, text)
			}
		}
		r.skipped[e.Package] = append(r.skipped[e.Package], fmt.Sprintf("        skipped %s: %s\n", e.Test, strings.Join(why, " ")))
	}
}

// leftOut begins the line in which a TestMain says why it runs none of the tests of its package. To go test that is a success.
const leftOut = "SKIP: "

func (r *report) endPackage(e event) {
	var result string
	var other []string
	for _, line := range r.output[test{pkg: e.Package}] {
		switch {
		case strings.HasPrefix(line, "ok  \t"), strings.HasPrefix(line, "FAIL\t"), strings.HasPrefix(line, "?   \t"):
			result = line
		case line == "PASS\n" || line == "FAIL\n":
		case strings.HasPrefix(line, leftOut) && e.Action != "fail":
			r.skips++
			why := strings.TrimSpace(strings.TrimPrefix(line, leftOut))
			r.skipped[e.Package] = append(r.skipped[e.Package], fmt.Sprintf("        skipped the package: %s\n", why))
		default:
			other = append(other, line)
		}
	}
	if e.Action == "fail" {
		r.failedPackages++
		r.showUnfinished(e.Package)
		// A TestMain that gave up, a panic, a deadline.
		fmt.Fprint(r.details, strings.Join(other, ""))
		if result == "" {
			result = fmt.Sprintf("FAIL\t%s\n", e.Package)
		}
	}
	if strings.HasPrefix(result, "?   \t") {
		return // No tests.
	}
	r.packages++
	fmt.Fprint(r.lines, result)
	for _, line := range slices.Concat(r.skipped[e.Package], r.failed[e.Package]) {
		fmt.Fprint(r.lines, line)
	}
}

// showUnfinished shows the output of tests that were running when their package ended.
func (r *report) showUnfinished(pkg string) {
	for key, lines := range r.output {
		if key.pkg == pkg && key.name != "" {
			r.failures++
			r.failed[pkg] = append(r.failed[pkg], whyFailed(key.name, lines)...)
			fmt.Fprint(r.details, strings.Join(lines, ""))
			delete(r.output, key)
		}
	}
}

// finish writes the totals and reports whether anything failed.
func (r *report) finish() bool {
	fmt.Fprintf(r.lines, "%d passed, %d failed, %d skipped, in %d packages\n", r.passes, r.failures, r.skips, r.packages)
	return r.failures > 0 || r.failedPackages > 0
}
