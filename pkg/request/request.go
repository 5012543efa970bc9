// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

const (
	// MaxEntries is how many entries of one annotation are read.
	MaxEntries = 256
	// MaxBytes is how much of one annotation is read, in bytes.
	MaxBytes = 16 << 10
)

// Request is what one of the annotations asks for. It is read once and then asked for many fields.
type Request struct {
	// Text is the annotation's value.
	Text string
	// Entries that can be followed.
	Entries []Selector
	// Malformed are the entries that select nothing, whatever there is.
	Malformed []string
	// Cut tells that the annotation has more entries than are read.
	Cut bool

	index    *Index
	managers map[Selector]bool
}

// New reads the value of an annotation, up to the bounds.
func New(text string) *Request {
	r := &Request{Text: text, managers: map[Selector]bool{}}
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
		if s.Manager != "" {
			r.managers[s] = true
		}
	}
	r.index = NewIndex(r.Entries)
	return r
}

// Empty reports whether nothing is asked for.
func (r *Request) Empty() bool { return len(r.Entries) == 0 && len(r.Malformed) == 0 && !r.Cut }

// Fields are the entries that are about fields of an object. Their places are those in Entries.
func (r *Request) Fields(object apply.ObjectRef) Fields { return r.index.Of(object) }

// Yields returns what reports whether a field of an object is left to other field managers: because an entry selects it, or
// because given does, which may be nil. It is nil when no field is.
func (r *Request) Yields(object apply.ObjectRef, given func(path fieldpath.Path) bool) func(path fieldpath.Path) bool {
	fields := r.Fields(object)
	if fields.Empty() {
		return given
	}
	return func(path fieldpath.Path) bool {
		return given != nil && given(path) || Yieldable(object, path) && fields.Has(path)
	}
}

// Manager reports whether an entry is about all that a manager holds of an object.
func (r *Request) Manager(object apply.ObjectRef, manager string) bool {
	return len(r.managers) > 0 &&
		(r.managers[Selector{Manager: manager}] || r.managers[Selector{Object: object.String(), Manager: manager}])
}

// Owned reports whether an entry selects a field of an object, by its path or by who holds it.
func (r *Request) Owned(object apply.ObjectRef, path fieldpath.Path, by ownership.Owner) bool {
	return r.Manager(object, by.Manager) || r.Fields(object).Has(path)
}

// Contested reports whether an entry selects a field that a conflict names, by its path or by who holds it.
func (r *Request) Contested(object apply.ObjectRef, path string, by ownership.Owner) bool {
	return r.Manager(object, by.Manager) || r.Fields(object).HasText(path)
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

// AnswerTo begins the message of a condition that answers a request in these words. It is short, however long they are.
func AnswerTo(annotation, text string) string {
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%s=%q: ", annotation, text)
	}
	return fmt.Sprintf("%s=%q... (%s): ", annotation, strings.ToValidUTF8(text[:maxQuoted], ""), Digest(text))
}

// digestBytes is the length of a digest, before it is written in hexadecimal digits.
const digestBytes = 8

// Digest identifies a text, in sixteen hexadecimal digits.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}
