// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// An expression that is wrong is one with which the proxyrunner exits.
func TestActorMatchersAreJudgedAsToolHiveJudgesThem(t *testing.T) {
	for _, c := range []struct {
		expression string
		// wrong is what is said of it; empty if it compiles. It never matches if it cannot result in a bool.
		wrong string
		never bool
	}{
		{expression: `true`},
		{expression: `claims.sub == "x"`},
		{expression: `claims["act"]["sub"] == "agent"`},
		{expression: `has(claims.act) && claims.act.sub.startsWith("agent-")`},
		{expression: `"admins" in claims.groups && !("act" in claims)`},
		{expression: `claims.groups.exists(g, g in ["admin", "sre"])`},
		{expression: `claims.sub.matches("^agent-[0-9]+$")`},
		{expression: `timestamp(claims.iat) < timestamp("2030-01-01T00:00:00Z")`},
		{expression: `claims.trusted`}, // of any type
		{expression: `claims.sub.matches("(")`},
		{expression: `dyn("x")`},
		{expression: "claims.azp ==\n  'a' // the only one"},

		{expression: `claims`, never: true},
		{expression: `"x"`, never: true},
		{expression: `size(claims)`, never: true},
		{expression: `claims.sub == "x" ? "yes" : "no"`, never: true},

		{expression: ` `, wrong: "line 1, column 2: Syntax error: mismatched input '<EOF>'"},
		{expression: `claims["sub"`, wrong: "line 1, column 13: Syntax error: missing ']'"},
		{expression: `claims.sub === "x"`, wrong: "line 1, column 14: Syntax error: "},
		{expression: "claims.sub == 'x' &&\nclaim.azp == 'a'", wrong: "line 2, column 1: undeclared reference to 'claim'"},
		{expression: `sub == "x"`, wrong: "line 1, column 1: undeclared reference to 'sub'"},
		{expression: `claims.sub == "x" && 1`, wrong: "line 1, column 22: expected type 'bool' but found 'int'"},
		{expression: `claims.sub.lowerAscii() == "x"`, wrong: "line 1, column 22: undeclared reference to 'lowerAscii'"}, // an extension
		{expression: `optional.of(claims)`, wrong: "undeclared reference to"},
		{expression: strings.Repeat("claims.sub in ['a'] || ", 150) + "true"},
		{expression: strings.Repeat("claims.groups.exists(g, g in ['a', 'b']) || ", 40) + "true"},
		{expression: "[1]" + strings.Repeat(".map(x, [[[[[[[x]]]]]]])", 9) + " == []"},
		{expression: "[1]" + strings.Repeat(".map(x, [[[[[[[x]]]]]]])", 10) + " == []", wrong: "nests too many"}, // 32 take seconds
		{expression: strings.Repeat("x", 5000), wrong: "…."},
		{expression: `"` + strings.Repeat("x", longestMatcher) + `"`, wrong: "is longer than 10000 bytes. Shorten it."},
	} {
		name := c.expression[:min(len(c.expression), 40)]
		_, wrong := compileMatcher(c.expression)
		if (wrong == "") != (c.wrong == "") || !strings.Contains(wrong, c.wrong) || len(wrong) > 300 || strings.Contains(wrong, "\n") {
			t.Errorf("%s: %q, want %q", name, wrong, c.wrong)
		}
		if never := neverMatches(c.expression); never != c.never {
			t.Errorf("%s: never matches: %v", name, never)
		}
		in := goodInput()
		trustedSpec(func(issuer *v1beta1.TrustedIssuerConfig) { issuer.ActorMatcher = c.expression })(in.Spec)
		if err := Validate(in.Spec); (err != nil) != (c.wrong != "") {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && !strings.HasPrefix(err.Error(), root+".trustedIssuers[0].actorMatcher ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
