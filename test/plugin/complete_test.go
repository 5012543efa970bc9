// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestCompletion asks for completions as the shells do.
func TestCompletion(t *testing.T) {
	ns := env.Namespace(t)
	ns.Create(t, harness.Server("web", "stdio"))
	ns.Create(t, harness.Server("other", "stdio"))
	ns.Kubectl(t).Run(t, "create", "configmap", "things")
	for line, want := range map[string][]string{
		"owners configm":                   {"configmaps"},
		"owners configmap/":                {"configmap/things"},
		"owners configmap ":                {"things"},
		"owners mcpservers/w":              {"mcpservers/web"},
		"owners -o ":                       {"wide", "tree", "html", "yaml", "json"},
		"owners --color=n":                 {"auto", "always", "never"},
		"conflicts ":                       {"mcpserver/other", "mcpserver/web"},
		"diff mcpserver/w":                 {"mcpserver/web"},
		"take mcpserver/web ":              nil,
		"release mcpserver/web ":           {"backend-replicas", "replicas"},
		"yield --dry-run=":                 {"none", "client", "server"},
		"explain st":                       {"statefulset"},
		"explain configmap/":               {"configmap/things"},
		"takeover mcpserver/web mcps":      {"mcpserver/other"},
		"handback mcpserver/w":             {"mcpserver/web"},
		"conflicts --namespace=" + ns.Name: {ns.Name},
	} {
		words := strings.Split(line, " ")
		got := do(t, ns, call{args: append([]string{"__complete"}, words...)})
		if got.code != cmd.ExitDone {
			t.Fatalf("%q ended with %d: %s", line, got.code, got.errOut)
		}
		var offered []string
		for text := range strings.Lines(got.out) {
			if text = strings.TrimSpace(text); !strings.HasPrefix(text, ":") {
				word, _, _ := strings.Cut(text, "\t")
				offered = append(offered, word)
			}
		}
		if !slices.Equal(offered, want) {
			t.Errorf("%q is completed by %v, want %v", line, offered, want)
		}
	}
}

// Every verb says how it is used, with examples that begin as they are typed.
func TestHelp(t *testing.T) {
	root := cmd.New(cmd.OfProcess())
	verbs := 0
	for _, verb := range root.Commands() {
		if verb.Name() == "help" || verb.Name() == "completion" {
			continue
		}
		verbs++
		if verb.Short == "" || verb.Long == "" || verb.Example == "" {
			t.Errorf("%s lacks a part of its help", verb.Name())
		}
		goesOn := false
		for line := range strings.Lines(verb.Example) {
			line = strings.TrimSpace(line)
			if line != "" && !goesOn && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "kubectl freehold "+verb.Name()) {
				t.Errorf("example of %s: %s", verb.Name(), line)
			}
			goesOn = strings.HasSuffix(line, "\\") || strings.HasSuffix(line, "|")
		}
		var out bytes.Buffer
		verb.SetOut(&out)
		if err := verb.Help(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
				t.Errorf("help of %s has a line of %d characters: %s", verb.Name(), n, line)
			}
		}
	}
	if verbs != 12 {
		t.Errorf("there are %d verbs", verbs)
	}
}
