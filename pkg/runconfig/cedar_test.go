// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	cedarlang "github.com/cedar-policy/cedar-go"
)

const permit = "permit(principal, action, resource);"

// The proxyrunner reads an entry up to its first semicolon, so what follows must be nothing.
func TestEachEntryHasOnePolicy(t *testing.T) {
	for text, fine := range map[string]bool{
		permit: true,
		"\n// first; (\n@id(\"a;\\\"b\") " + permit + "\n// last; forbid(\n/* and; ***/ \t": true,
		`permit(principal, action, resource) when { context.a == "x; // \" /*" };`:          true,
		`permit(principal, action, resource) when { "\\" == "\\" };//`:                      true,
		permit + " forbid(principal, action, resource);":                                    false,
		permit + "\n// a comment\nforbid(principal, action == Action::\"x\", resource);":    false,
		permit + ";":                   false,
		permit + "x":                   false,
		permit + `"`:                   false,
		permit + "/**/(":               false,
		permit + "/":                   false,
		permit + " \u00a0":             false,
		permit + "//\n\n)":             false,
		permit + "/* /* */ forbid */*": false,
	} {
		err := (&Cedar{Policies: []string{text}}).validate()
		if fine && err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if !fine && (err == nil || !strings.Contains(err.Error(), "policies[0]")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// nested returns a policy with a text around another one many times.
func nested(before, middle, after string, times int) string {
	return "permit(principal, action, resource) when { " + strings.Repeat(before, times) + middle + strings.Repeat(after, times) + " };"
}

// A policy costs the operator little whatever it is, and one that would cost the proxy much is refused.
func TestAPolicyThatWouldTakeTheMemoryIsRefused(t *testing.T) {
	const mostMiB = 24
	for name, test := range map[string]struct {
		policy string
		says   string
	}{
		"deep brackets":         {nested("[", "1", "]", 300_000), "65536 is the most"},
		"brackets":              {nested("[", "1", "]", 30_000), "nested 30001 deep"},
		"brackets in reverse":   {"permit(principal, action, resource) when { " + strings.Repeat("(", 60_000), "nested"},
		"deep attributes":       {nested("(", "context", " has a.a)", 60), "terms"},
		"more of them":          {nested("(", "context", " has a.a.a.a)", 60), "terms"},
		"many conditions":       {nested("if true then true else ", "true", "", 2800), ""},
		"many negations":        {nested("!", "true", "", 60_000), "terms"},
		"a long list of tools":  {nested(`resource == Tool::"a_tool_of_some_length" || `, "true", "", 1400), ""},
		"a long chain":          {nested("", "context", " has a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", 1), ""},
		"some brackets":         {nested("(", "true", ")", 90), ""},
		"attributes, two deep":  {nested("(", "context", " has a.b)", 2), ""},
		"many flat comparisons": {nested(`context.a_name == "a value" && `, "true", "", 1900), ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := (&Cedar{Policies: []string{test.policy}}).validate()
		runtime.ReadMemStats(&after)
		if (test.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the message has %d bytes", name, len(err.Error()))
		}
		stacks := int64(after.StackInuse) - int64(before.StackInuse) // They shrink where an earlier test has made them grow.
		if took := (int64(after.TotalAlloc-before.TotalAlloc) + stacks) >> 20; took > mostMiB {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
}

// FuzzPolicy: what is accepted is what the proxyrunner's parser reads, to the end.
func FuzzPolicy(f *testing.F) {
	f.Add(permit)
	f.Add("// a\npermit(principal, action, resource) when { \"a;\\\"b\" == context.c /* ; */ };\n")
	f.Add(permit + "forbid(principal, action, resource);")
	f.Fuzz(func(t *testing.T, text string) {
		if parsePolicy(text) != nil {
			return
		}
		var policy cedarlang.Policy
		if err := policy.UnmarshalCedar([]byte(text)); err != nil {
			t.Errorf("the proxyrunner exits: %v", err)
		}
		list, err := cedarlang.NewPolicyListFromBytes("x", []byte(text))
		if err != nil || len(list) != 1 {
			t.Errorf("%q has %d policies: %v", text, len(list), err)
		}
	})
}

func ExampleCedarAuthz() {
	_, err := CedarAuthz(&Cedar{Policies: []string{permit + " forbid(principal, action, resource);"}})
	fmt.Println(err)
	// Output: policies[0] is not a policy in Cedar's language: there is more after its semicolon, which the proxyrunner ignores; give each policy an entry of its own
}
