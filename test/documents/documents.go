// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents knows the commands that the documentation shows to be typed, and which test types them. Its own tests
// type those that need a whole cluster with nothing else on it; other suites type others.
package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Command is one command of a document: a line of a block that begins with ```sh, with the lines that continue it.
type Command struct {
	// File is the document, as a path below the root of the repository.
	File string
	// Section is the heading above it.
	Section string
	// Line in the file, from 1.
	Line int
	// Text without comments.
	Text string
}

// String tells where the command is, and what it is.
func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Text) }

// Root is the root of the repository, seen from a package of a suite.
var Root = filepath.Join("..", "..")

// All reads the commands of all documents in the repository.
func All() ([]Command, error) {
	var commands []Command
	err := filepath.WalkDir(Root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "_output"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(Root, path)
		if err != nil {
			return err
		}
		commands = append(commands, parse(filepath.ToSlash(file), string(text))...)
		return nil
	})
	return commands, err
}

// parse reads the commands of one document.
func parse(file, text string) []Command {
	var commands []Command
	section, block, continued := "", "", false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		marker, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && block == "":
			block, continued = "```"+marker, false
		case fenced:
			block = ""
		case block == "" && strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case block == "```sh":
			line, _, _ = strings.Cut(line, " #")
			part, more := strings.CutSuffix(strings.TrimSpace(line), `\`)
			if continued {
				commands[len(commands)-1].Text += part
			} else if part != "" {
				commands = append(commands, Command{File: file, Section: section, Line: number, Text: part})
			}
			continued = more
		}
	}
	return commands
}

// Of returns the commands that the ledger gives to the test that calls it, in the order of the documents. That test has
// to type all of them.
func Of(t *testing.T) []Command {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	mine := slices.DeleteFunc(all, func(c Command) bool {
		found := entriesOf(c)
		return len(found) == 0 || found[0].test != filepath.Base(directory)+"."+name
	})
	if len(mine) == 0 {
		t.Fatal("the ledger gives no command to this test")
	}
	return mine
}
