// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// older and newer are two releases of a small ToolHive.
var older = files{
	crds + "a.yaml":       "spec: {versions: [{name: v1, description: old words, schema: {secrets: {keys: [name]}, gone: {type: string}}}]}",
	chart + "values.yaml": "tls: false\n",
	"pkg/runner/config.go": `package runner
import "github.com/stacklok/toolhive/pkg/session"
type RunConfig struct {
	Image string ` + "`json:\"image\"`" + `
	Session *session.Redis ` + "`json:\"session_redis,omitempty\"`" + `
	hidden int
}`,
	"pkg/session/redis.go": "package session\ntype Redis struct { Address string `json:\"address\"` }",
	"pkg/container/kubernetes/client.go": `package kubernetes
// A comment.
func (c *Client) apply() { send("a") }
func same() {}
func old() {}`,
}

var newer = files{
	crds + "a.yaml":        "spec: {versions: [{name: v1, description: new words, schema: {secrets: {keys: [name, key]}}}]}",
	crds + "b.yaml":        "spec: {}",
	chart + "values.yaml":  "tls: true\n",
	"pkg/runner/config.go": older["pkg/runner/config.go"],
	"pkg/session/redis.go": "package session\ntype Redis struct { Address string `json:\"address\"`; TLS *TLS `json:\"tls\"` }\ntype TLS struct { CA string `json:\"ca\"` }",
	"pkg/container/kubernetes/client.go": `package kubernetes
// Another comment.
func (c *Client) apply() { send("b") }
func same() {}
func added() {}`,
}

func TestCompareFindsWhatChanged(t *testing.T) {
	sections, err := compare(older, newer, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Schemas": {
			"- a.spec.versions.v1.schema.gone: {\"type\":\"string\"}",
			"~ a.spec.versions.v1.schema.secrets.keys: [\"name\",\"key\"], was [\"name\"]",
			"+ b",
		},
		"Keys": {"+ session_redis.tls *TLS", "+ session_redis.tls.ca string"},
		"Proxyrunner: bodies": {
			"~ pkg/container/kubernetes.Client.apply", "+ pkg/container/kubernetes.added", "- pkg/container/kubernetes.old",
		},
		"Proxyrunner: command": nil,
	}
	for title, lines := range want {
		i := slices.IndexFunc(sections, func(s section) bool { return strings.HasPrefix(s.title, title) })
		if i < 0 {
			t.Fatalf("there is no section %q", title)
		}
		if !slices.Equal(sections[i].lines, lines) {
			t.Errorf("%s:\n%s\nwant:\n%s", title, strings.Join(sections[i].lines, "\n"), strings.Join(lines, "\n"))
		}
	}
}

func TestCompareShowsTexts(t *testing.T) {
	sections, err := compare(older, newer, true)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, s := range sections {
		all.WriteString(strings.Join(s.lines, "\n"))
	}
	for _, line := range []string{"-tls: false\n+tls: true", `+func (c *Client) apply() { send("b") }`} {
		if !strings.Contains(all.String(), line) {
			t.Errorf("the report has no %q:\n%s", line, all.String())
		}
	}
}

// TestCompareFindsSecurityFixes reads two published releases. The later one mends what the proxyrunner enforces in three places,
// and changes nothing else that concerns Freehold.
func TestCompareFindsSecurityFixes(t *testing.T) {
	older, err := download(t.Context(), "v0.62.0")
	if err != nil {
		t.Fatal(err)
	}
	newer, err := download(t.Context(), "v0.63.0")
	if err != nil {
		t.Fatal(err)
	}
	sections, err := compare(older, newer, false)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range sections {
		found[s.title] = strings.Join(s.lines, "\n") + "\n"
	}
	for fix, lines := range map[string][]string{
		"tool filter":                  {"~ pkg/mcp.NewListToolsMappingMiddleware", "+ pkg/mcp.WithoutAcceptEncoding", "~ pkg/mcp.toolFilterWriter.Write"},
		"list filter of authorization": {"~ pkg/authz.authorizeListAndServe", "~ pkg/authz.ResponseFilteringWriter.FlushAndFilter"},
		"local failures of webhooks":   {"+ pkg/webhook.LocalError", "~ pkg/webhook/mutating.executeSingleMutation", "~ pkg/webhook/validating.createValidatingHandler"},
	} {
		for _, line := range lines {
			if !strings.Contains(found[enforces], line+"\n") {
				t.Errorf("%s: the report has no %q:\n%s", fix, line, found[enforces])
			}
		}
	}
	for _, words := range []string{"--- docs/authz.md", "not forward it unfiltered", "--- docs/middleware.md", "+The component fails closed."} {
		if !strings.Contains(found["Documentation"], words) {
			t.Errorf("the report has no %q:\n%s", words, found["Documentation"])
		}
	}
	for title, text := range found {
		for line := range strings.Lines(text) {
			if len(line) > longestValue+len("...\n") {
				t.Errorf("%s: a line of %d bytes: %s", title, len(line), line)
			}
		}
	}
	const readable = 100 // lines, of some 150 changes
	if got := strings.Count(found[enforces], "\n"); got > readable {
		t.Errorf("%s: %d lines", enforces, got)
	}
}

func TestCompareSaysThatTheDocumentIsGone(t *testing.T) {
	if _, err := compare(older, files{}, false); err == nil || !strings.Contains(err.Error(), runConfig) {
		t.Errorf("got error %v, want one about %s", err, runConfig)
	}
}
