// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shelltest runs printed commands in real shells, with a kubectl that records how it was called. It is for tests.
package shelltest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kubectl records how many arguments it was called with, and then those, each with a NUL behind it.
const kubectl = `#!/bin/sh
printf '%s\000' "$#" "$@" >>"$RECORD"
`

// Hostile are texts that a shell, a terminal or kubectl must not take for anything but text.
func Hostile() []string {
	return []string{
		"$(touch pwned)", "`touch pwned`", `"; touch pwned; "`, "'; touch pwned; '", "a\ntouch pwned\n", "&& touch pwned",
		"| touch pwned", "> pwned", "--force", "-n", "!touch", "~", "*", "# comment", `\`, `\'`, "%s%n", "a b  c", "{a,b}",
		"\x1b]0;pwned\x07", "abc\u202edcb", "\r\ntouch pwned\r\n", "=ls", "$HOME", "${IFS}", "tab\there", "\xff\xfe",
	}
}

// Calls runs a printed command in each POSIX shell that there is and returns the arguments of each call of kubectl. It
// fails if the shells differ, if the command fails, if it does anything else than to call kubectl, or if it is not
// printable.
func Calls(t *testing.T, command string) [][]string {
	t.Helper()
	var first []byte
	for i, shell := range shells(t) {
		record := run(t, shell, command)
		if i > 0 && !bytes.Equal(record, first) {
			t.Fatalf("%s calls kubectl otherwise than the first shell: %s\n%q\n%q", shell, command, record, first)
		}
		first = record
	}
	return read(t, strings.Split(strings.TrimSuffix(string(first), "\x00"), "\x00"))
}

// read takes a record apart.
func read(t *testing.T, record []string) (calls [][]string) {
	t.Helper()
	for len(record) > 0 {
		count, err := strconv.Atoi(record[0])
		if err != nil || count >= len(record) {
			t.Fatalf("the record of kubectl is broken: %q", record)
		}
		calls, record = append(calls, record[1:count+1]), record[count+1:]
	}
	return calls
}

// shells returns the paths of those that are installed. There is always sh.
func shells(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range []string{"sh", "dash", "bash", "busybox", "zsh", "ksh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if name != "busybox" { // which takes its function from its name
			if path, err = filepath.EvalSymlinks(path); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no shell to try commands with")
	}
	return found
}

func run(t *testing.T, shell, command string) (record []byte) {
	t.Helper()
	programs, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	recorded := filepath.Join(programs, "record")
	arguments := []string{"-c", command}
	if filepath.Base(shell) == "busybox" {
		arguments = append([]string{"sh"}, arguments...)
	}
	cmd := exec.CommandContext(t.Context(), shell, arguments...)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "RECORD=" + recorded, "HOME=/home/pwned"}
	output, err := cmd.CombinedOutput()
	if err != nil || len(output) > 0 {
		t.Fatalf("%s: %v, it says %q: %s", shell, err, output, command)
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Fatalf("%s: the command did something else, %v %v: %s", shell, left, err, command)
	}
	if record, err = os.ReadFile(recorded); err != nil {
		t.Fatalf("%s: kubectl was not called: %s", shell, command)
	}
	return record
}
