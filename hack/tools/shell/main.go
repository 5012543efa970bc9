// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command shell finds constructs in bash scripts that do not run on macOS: syntax and builtins that bash 3.2 lacks, and
// options of standard utilities that only GNU's have. ShellCheck looks for neither.
//
//	shell FILE...
//
// A comment "# portable: why" exempts the next line from the check of utilities, as for one that tries GNU's way and then
// BSD's. The syntax of a newer bash cannot be exempted: bash 3.2 reads a script before it runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	failed := false
	for _, name := range os.Args[1:] {
		source, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "shell:", err)
			os.Exit(2)
		}
		findings, err := check(name, source)
		if err != nil {
			fmt.Fprintln(os.Stderr, "shell:", err)
			os.Exit(2)
		}
		for _, finding := range findings {
			fmt.Println(finding)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
