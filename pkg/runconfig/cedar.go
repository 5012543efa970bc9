// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"errors"
	"fmt"
	"strings"

	cedarast "github.com/cedar-policy/cedar-go/ast"
	cedarexp "github.com/cedar-policy/cedar-go/x/exp/ast"
)

// Limits of a policy. Its author may be anybody who may edit a ConfigMap that an MCPServer refers to, and one policy must not take the
// memory of the operator, or of the proxy, which compiles it: a parser's stack grows with the nesting by some KiB for each level, and a
// compiler doubles what is before each "has a.b". Each limit is far beyond what people write.
const (
	// mostPolicyBytes is the length of a policy, in bytes.
	mostPolicyBytes = 64 << 10
	// mostNesting is how deep brackets may be nested.
	mostNesting = 100
	// mostTerms is how many terms a policy may have when it is compiled.
	mostTerms = 20_000
)

// parsePolicy returns an error that says what is wrong with a policy; nil for a valid one. It compiles nothing.
func parsePolicy(text string) error {
	if len(text) > mostPolicyBytes {
		return fmt.Errorf("it has %d bytes; %d is the most", len(text), mostPolicyBytes)
	}
	nesting, rest := outline(text)
	if nesting > mostNesting {
		return fmt.Errorf("its brackets are nested %d deep; %d is the most", nesting, mostNesting)
	}
	var policy cedarast.Policy
	if err := policy.UnmarshalCedar([]byte(text)); err != nil {
		return unread(err)
	}
	if rest {
		return errors.New("there is more after its semicolon, which the proxyrunner ignores; give each policy an entry of its own")
	}
	terms := 0
	for _, condition := range (*cedarexp.Policy)(&policy).Conditions {
		cedarexp.Inspect(cedarexp.NewNode(condition.Body), func(cedarexp.IsNode) bool {
			terms++
			return terms <= mostTerms
		})
	}
	if terms > mostTerms {
		return fmt.Errorf(`it has more than %d terms when it is compiled, for which each "has a.b" counts what is before it twice; write it with fewer`, mostTerms)
	}
	return nil
}

// outline returns how deep the brackets of a policy are nested, and whether anything follows its first semicolon but blanks and
// comments. It knows strings and comments, and otherwise expects no valid policy.
func outline(text string) (nesting int, rest bool) {
	depth, ended := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "//"):
			i += index(text[i:], "\n")
			continue
		case strings.HasPrefix(text[i:], "/*"):
			i += len("/*") + index(text[i+len("/*"):], "*/")
			continue
		case strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		case ended:
			rest = true
		case c == ';':
			ended = true
			continue
		}
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '[', '{':
			depth++
			nesting = max(nesting, depth)
		case ')', ']', '}':
			depth--
		}
	}
	return nesting, rest
}

// index returns the index of the last byte of what ends a part of a text; of the text where nothing ends it.
func index(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end) - 1
	}
	return len(text)
}
