// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTextEscapesWhatDoesNotShowAsItself(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		`.spec.x[name="a\\b"] $(x)`: `.spec.x[name="a\\b"] $(x)`,
		"Grüße, 世界 ✓":               "Grüße, 世界 ✓",
		"a\nb\tc\rd":                `a\nb\tc\rd`,
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"\x00\x07\x7f":              `\x00\a\x7f`,
		"\u009b31m":                 `\u009b31m`,
		"abc\u202edcb\u2066":        `abc\u202edcb\u2066`,
		"zero\u200bwidth":           `zero\u200bwidth`,
		"no-break\u00a0blank":       `no-break\u00a0blank`,
		"tag \U000e0041":            `tag \U000e0041`,
		"broken \xff\xc3":           `broken \xff\xc3`,
		"replacement \ufffd":        `replacement \ufffd`,
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) is %q, want %q", text, got, want)
		}
	}
}

func TestLinesKeepsLineFeedsAlone(t *testing.T) {
	if got, want := Lines("a\nb\r\n\x1b"), "a\nb\\r\n\\x1b"; got != want {
		t.Errorf("Lines is %q, want %q", got, want)
	}
}

func TestTextIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		once := Text(text)
		for _, r := range once {
			if !Rune(r) || r == utf8.RuneError {
				t.Fatalf("%q has %q in it", once, r)
			}
		}
		if again := Text(once); again != once {
			t.Fatalf("%q becomes %q", once, again)
		}
	})
}
