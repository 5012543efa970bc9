// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package markers replaces what programs write into files that people write, between the lines
//
//	BEGIN NAME
//	END NAME
//
// which are comments of Markdown or of YAML.
package markers

import (
	"fmt"
	"strings"
)

// Replace puts texts between the markers of their names, and keeps the indentation of these. It fails if the document has none of the
// texts, has markers that are unknown, there twice or one inside of another, or a text that does not end.
func Replace(document string, texts map[string]string) (string, error) {
	var out strings.Builder
	done, open := map[string]bool{}, ""
	for line := range strings.Lines(document) {
		begins, isBegin := marker(line, "BEGIN ")
		ends, isEnd := marker(line, "END ")
		text, known := texts[begins]
		switch {
		case isBegin && (open != "" || !known || done[begins]):
			return "", fmt.Errorf("%s is inside of another text, unknown, or there twice", strings.TrimSpace(line))
		case isEnd && ends != open:
			return "", fmt.Errorf("%s is not where %q ends", strings.TrimSpace(line), open)
		case isBegin:
			open, done[begins] = begins, true
			out.WriteString(line)
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			for added := range strings.Lines(text) {
				out.WriteString(indent + added)
			}
		case isEnd:
			open = ""
			out.WriteString(line)
		case open == "":
			out.WriteString(line)
		}
	}
	if open != "" || len(done) == 0 {
		return "", fmt.Errorf("there is nothing to replace, or %q does not end", open)
	}
	return out.String(), nil
}

// marker returns the name of the text that a line begins or ends; ok is false for any other line.
func marker(line, word string) (name string, ok bool) {
	line = strings.TrimSpace(line)
	if inner, found := strings.CutPrefix(line, "<!-- "); found {
		if line, found = strings.CutSuffix(inner, " -->"); !found {
			return "", false
		}
	} else if line, found = strings.CutPrefix(line, "# "); !found {
		return "", false
	}
	name, ok = strings.CutPrefix(line, word)
	return name, ok && !strings.Contains(name, " ")
}
