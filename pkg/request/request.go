// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request parses and writes the annotations freehold.dev/take and freehold.dev/yield, by which the author of an
// MCPServer settles conflicts. docs/ownership.md explains them.
package request

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

const (
	// MaxEntries is the number of entries that are read of one annotation.
	MaxEntries = 256
	// MaxBytes is the number of bytes that are read of one annotation.
	MaxBytes = 16 << 10
)

// Request is the parsed value of one of the annotations. It is parsed once and then used for many fields.
type Request struct {
	// Text is the annotation's value.
	Text string
	// Entries that Freehold can follow.
	Entries []Selector
	// Malformed are the entries that can select nothing.
	Malformed []string
	// Cut reports that the annotation has more entries than are read.
	Cut bool

	// entries are Entries, to be found by what they name.
	entries selectors
}

// New parses the value of an annotation, up to the limits.
func New(text string) *Request {
	r := &Request{Text: text}
	entries := text
	if len(entries) > MaxBytes {
		entries, r.Cut = entries[:MaxBytes], true
	}
	split := Split(entries)
	if r.Cut && len(split) > 0 && !strings.HasSuffix(entries, ",") && strings.TrimSpace(entries[MaxBytes-1:]) != "" {
		split = split[:len(split)-1] // It goes on beyond the bound.
	}
	if len(split) > MaxEntries {
		split, r.Cut = split[:MaxEntries], true
	}
	for _, entry := range split {
		s := read(entry)
		if !s.wellFormed() {
			r.Malformed = append(r.Malformed, entry)
			continue
		}
		r.Entries = append(r.Entries, s)
	}
	r.entries = selectorsOf(r.Entries)
	return r
}

// Empty reports whether the request has no entries.
func (r *Request) Empty() bool { return len(r.Entries) == 0 && len(r.Malformed) == 0 && !r.Cut }

// Concerns reports whether an entry names a field that the object may have.
func (r *Request) Concerns(object apply.ObjectRef) bool {
	name := object.String()
	return slices.ContainsFunc(r.Entries, func(s Selector) bool { return s.Path != "" && (s.Object == "" || s.Object == name) })
}

// Selecting returns the entries that select a field of an object, by its path or by a parent's.
func (r *Request) Selecting(object apply.ObjectRef, path fieldpath.Path) []Selector {
	return r.entries.selecting(object, textsOf(path))
}

// Yields returns a function that reports whether a field of an object is left to other field managers: an entry selects
// it, or given, which may be nil, returns true for it. It returns nil if no field is. The settings of a StatefulSet's rolling
// update are left to others exactly if the type of the strategy is.
func (r *Request) Yields(object apply.ObjectRef, given func(path fieldpath.Path) bool) func(path fieldpath.Path) bool {
	if !r.Concerns(object) {
		return given
	}
	return func(path fieldpath.Path) bool {
		if followsStrategy(object, textsOf(path)) {
			path = strategyType
		}
		return given != nil && given(path) || len(r.Selecting(object, path)) > 0 && Yieldable(object, path)
	}
}

// Manager reports whether an entry selects all fields that a manager owns of an object.
func (r *Request) Manager(object apply.ObjectRef, manager string) bool {
	return r.entries[Selector{Manager: manager}] || r.entries[Selector{Object: object.String(), Manager: manager}]
}

// Owned reports whether an entry selects a field of an object, by its path or by its owner.
func (r *Request) Owned(object apply.ObjectRef, path fieldpath.Path, by ownership.Owner) bool {
	return r.Manager(object, by.Manager) || len(r.Selecting(object, path)) > 0
}

// Contested reports whether an entry selects a field that a conflict names, by its path or by its owner.
func (r *Request) Contested(object apply.ObjectRef, path string, by ownership.Owner) bool {
	return r.Manager(object, by.Manager) || len(r.entries.selecting(object, Elements(path))) > 0
}

// wellFormed reports whether an entry can select something.
func (s Selector) wellFormed() bool {
	if s.Path == "" {
		return s.Manager != "" && !strings.ContainsFunc(s.Manager, func(r rune) bool { return !unicode.IsPrint(r) })
	}
	depth, quoted, escaped := 0, false, false
	for i, r := range s.Path {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = r == '\\', r != '"'
		case r == '"' && depth > 0:
			quoted = true
		case r == '[':
			depth++
		case r == ']':
			if depth--; depth < 0 || s.Path[i-1] == '[' {
				return false
			}
		}
	}
	return depth == 0 && !quoted && !strings.HasSuffix(s.Path, ".")
}

// maxQuoted is how much of a request is quoted where it is answered, in bytes.
const maxQuoted = 128

// AnswerTo returns the start of the message of a condition that answers a request with this text. It is short, however
// long the text is.
func AnswerTo(annotation, text string) string {
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%s=%q: ", annotation, text)
	}
	return fmt.Sprintf("%s=%q... (%s): ", annotation, strings.ToValidUTF8(text[:maxQuoted], ""), Digest(text))
}

// digestBytes is the length of a digest, before it is written in hexadecimal digits.
const digestBytes = 8

// Digest returns an identifier of a text, in sixteen hexadecimal digits.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}
