// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell writes commands for users to paste into a POSIX shell.
//
// It guarantees that the shell calls the program with exactly the arguments that were given, and does nothing else,
// whatever is in them: they may come from other users, whom the user who pastes the command need not trust. The output
// is printable, so that nothing happens while it is pasted either. Every command in a condition, an event or the
// plugin's output is made by Command. The caller makes sure that an argument is no flag, by its first characters or by
// "--" before it.
package shell

import (
	"fmt"
	"strings"

	"github.com/freehold-dev/freehold/pkg/printable"
)

// Command is a call of a program, the first word, with arguments. No word may have a NUL in it, as none can.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// Kubectl is a call of kubectl.
func Kubectl(words ...string) string { return Command(append([]string{"kubectl"}, words...)...) }

// Sequence is commands of which each is run if the one before it succeeds.
func Sequence(commands ...string) string { return strings.Join(commands, " && ") }

func quote(word string) string {
	switch {
	case word != "" && !isAssignment(word) && strings.IndexFunc(word, isSpecial) < 0:
		return word
	case printable.Text(word) == word:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	// A shell drops the line feeds at the end of what a command prints.
	body := strings.TrimRight(word, "\n")
	quoted := ""
	if body != "" {
		quoted = `"$(printf '` + format(body) + `')"`
	}
	if tail := word[len(body):]; tail != "" {
		quoted += "'" + tail + "'"
	}
	return quoted
}

// isAssignment reports whether a word gives something a value. Quotes show where the value ends, in the middle of a sentence
// too.
func isAssignment(word string) bool { return word[0] != '-' && strings.Contains(word, "=") }

// isSpecial reports whether a character may mean something to a shell, POSIX or not.
func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_@%+=:,./-", r)
}

// format returns a printf format that prints the text and has no character that is special between quotes of either
// kind: an interactive shell looks for ! even there.
func format(text string) string {
	var escaped strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case isSpecial(rune(c)) && c != ' ', c == '%', i == 0 && c == '-':
			fmt.Fprintf(&escaped, `\%03o`, c)
		default:
			escaped.WriteByte(c)
		}
	}
	return escaped.String()
}
