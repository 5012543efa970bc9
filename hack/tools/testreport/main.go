// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testreport reads what go test -json writes and shows what matters: a line for each package as go test
// has it, all that a failed test wrote, and why each skipped test was skipped, which go test itself prints only with
// -v. A package whose TestMain runs no test and prints a line that begins with "SKIP: " counts as one skipped test.
//
//	go test -json ./... | testreport [-summary FILE]
//
// It fails when a test failed or a package did not build.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	summary := flag.String("summary", "", "append the lines of the packages and the totals to this file as well")
	flag.Parse()
	failed, err := run(os.Stdin, os.Stdout, *summary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func run(events io.Reader, out io.Writer, summaryFile string) (failed bool, err error) {
	summary := io.Discard
	if summaryFile != "" {
		file, err := os.OpenFile(summaryFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return false, err
		}
		defer func() {
			if closeErr := file.Close(); err == nil && closeErr != nil {
				failed, err = false, closeErr
			}
		}()
		summary = file
	}
	r := newReport(out, io.MultiWriter(out, summary))
	if err := r.read(events); err != nil {
		return false, err
	}
	return r.finish(), nil
}
