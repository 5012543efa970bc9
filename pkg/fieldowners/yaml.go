// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// YAML returns content as YAML. It escapes characters that JSON allows and YAML does not, so that one such character in a
// user's value does not hide the rest.
func YAML(content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(escaped(text))
}

// escaped returns JSON in which characters that YAML reads differently are escaped. They occur only in strings.
func escaped(text []byte) []byte {
	if bytes.IndexFunc(text, isUnfit) < 0 {
		return text
	}
	var fit bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if isUnfit(r) {
			fmt.Fprintf(&fit, `\u%04x`, r)
		} else {
			fit.Write(text[:size])
		}
		text = text[size:]
	}
	return fit.Bytes()
}

func isUnfit(r rune) bool { return r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff }
