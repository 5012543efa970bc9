// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command licences lists the modules that are compiled into the released programs, with their versions and licences, as a
// page of Markdown. It fails where a module has no licence that it recognises, or one that the project does not allow.
//
//	licences DIRECTORY
//
// The directory is that of the main module. What it reads are the files of the modules themselves; it asks no service.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licences DIRECTORY")
		os.Exit(2)
	}
	modules, err := compiledIn(os.Args[1], programs, platforms)
	if err == nil {
		err = identify(modules)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(page(modules))
}
