// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strconv"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

const (
	// maxQuoted is how much of a user's value a message repeats, in characters.
	maxQuoted = 80
	// maxMessage is the length of a message, in characters. A condition takes 32,768 bytes, all problems
	// together.
	maxMessage = 1000
)

// findings collects problems and notices, in the order in which they were found.
type findings struct {
	problems []Problem
	// held are problems that keep only the proxy from being written.
	held    []Problem
	notices []Problem
	// warnings are conditions that are False.
	warnings []Problem
}

// invalid records a problem that keeps everything from being written.
func (f *findings) invalid(condition, reason, format string, args ...any) {
	f.problems = append(f.problems, Problem{condition, reason, clip(fmt.Sprintf(format, args...), maxMessage)})
}

// invalidSpec records a problem of the spec that has no condition of its own.
func (f *findings) invalidSpec(reason, format string, args ...any) {
	f.invalid(v1beta1.ConditionSpecValid, reason, format, args...)
}

// notice records something that works otherwise than the spec says.
func (f *findings) notice(condition, reason, format string, args ...any) {
	f.notices = append(f.notices, Problem{condition, reason, clip(fmt.Sprintf(format, args...), maxMessage)})
}

// warn records, in a condition that is False, something that delays pods and blocks no write.
func (f *findings) warn(condition, reason, format string, args ...any) {
	f.warnings = append(f.warnings, Problem{condition, reason, clip(fmt.Sprintf(format, args...), maxMessage)})
}

// amend adds to the message about a reference that can be used.
func (f *findings) amend(ref *reference, format string, args ...any) {
	for i := range f.notices {
		if f.notices[i].Condition == ref.Condition {
			f.notices[i].Message = clip(f.notices[i].Message+". Mind that "+fmt.Sprintf(format, args...), maxMessage)
		}
	}
}

// quote shows a user's value on one line and not longer than is useful.
func quote(value string) string {
	return strconv.Quote(clip(value, maxQuoted))
}

// clip shortens a text to a number of characters.
func clip(text string, length int) string {
	if len(text) <= length {
		return text
	}
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length]) + "…"
	}
	return text
}
