// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yamlsafe prepares JSON for readers of YAML.
package yamlsafe

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Escape returns a JSON document of the same meaning that a YAML parser reads as JSON does. Nearly all JSON is YAML, but
// strings of JSON may hold some characters that YAML refuses (U+007F to U+009F, U+FFFE, U+FFFF), or that it folds into a
// space as line breaks (U+0085, U+2028, U+2029). A document without them is returned as it is.
func Escape(document []byte) []byte {
	if bytes.IndexFunc(document, differs) < 0 {
		return document
	}
	var escaped bytes.Buffer
	for len(document) > 0 {
		c, size := utf8.DecodeRune(document)
		if differs(c) {
			fmt.Fprintf(&escaped, `\u%04x`, c)
		} else {
			escaped.Write(document[:size])
		}
		document = document[size:]
	}
	return escaped.Bytes()
}

// differs reports whether YAML reads a character of a JSON string in another way. (Those below a space are escaped in JSON.)
func differs(c rune) bool {
	return c >= 0x7f && c <= 0x9f || c == 0x2028 || c == 0x2029 || c == 0xfffe || c == 0xffff
}
