// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/internal/shelltest"
	"github.com/freehold-dev/freehold/pkg/printable"
	"github.com/freehold-dev/freehold/pkg/shell"
)

// FuzzCommand: real shells pass the words of a command, which no NUL is in, to the program byte for byte, on their own and in a sequence.
func FuzzCommand(f *testing.F) {
	f.Add(strings.Join(shelltest.Hostile(), "\x00"))
	for _, text := range []string{"", "a\n\n\nb\n\n", "-x\x01\x00\x01!a\x00\\\n\x00\xe2\x80\x00="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		command := shell.Command(append([]string{"kubectl"}, words...)...)
		if got := shelltest.Calls(t, shell.Sequence(command, command)); !cmp.Equal(got, [][]string{words, words}) {
			t.Errorf("%s calls kubectl with %q, want %q twice", command, got, words)
		}
		// Line feeds at the end of a word stand for themselves: a shell drops them otherwise.
		if plain := strings.ReplaceAll(command, "\n", ""); printable.Text(plain) != plain {
			t.Errorf("%q is not printable", command)
		}
	})
}
