// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSON: the form in which the proxyrunner's ConfigMap holds the document.
func TestJSON(t *testing.T) {
	profile, _ := BuiltinProfile(ProfileNone)
	document := &RunConfig{
		SchemaVersion: SchemaVersion, Generation: Generation, Image: "i", Name: "n", Transport: "stdio",
		Host: "h", Port: 1, PermissionProfile: profile, Scaling: &Scaling{SessionRedis: &SessionRedis{Address: "r", DB: 1}},
		EnvVars: map[string]string{"b": "<&>", "a": "1"},
	}
	want := `{
  "schema_version": "v0.1.0",
  "mcpserver_generation": 1,
  "image": "i",
  "name": "n",
  "transport": "stdio",
  "host": "h",
  "port": 1,
  "permission_profile": {
    "name": "none",
    "network": {
      "outbound": {},
      "inbound": {}
    }
  },
  "env_vars": {
    "a": "1",
    "b": "\u003c\u0026\u003e"
  },
  "scaling_config": {
    "session_redis": {
      "address": "r",
      "db": 1
    }
  }
}`
	got, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

// TestBuiltinProfiles: there are three names for two profiles, and nobody can spoil the next one's.
func TestBuiltinProfiles(t *testing.T) {
	for name, allowAll := range map[string]bool{"none": false, "stdio": false, "network": true} {
		profile, ok := BuiltinProfile(name)
		if !ok || profile.Network.Outbound.InsecureAllowAll != allowAll {
			t.Errorf("%s: got %+v, %v", name, profile, ok)
			continue
		}
		profile.Read = append(profile.Read, "/x")
		if again, _ := BuiltinProfile(name); len(again.Read) > 0 {
			t.Errorf("%s: a profile was spoiled by the use of another", name)
		}
	}
	if profile, ok := BuiltinProfile("web"); ok || profile != nil {
		t.Errorf("web: got %+v, %v", profile, ok)
	}
}

// TestParseProfile: a profile is a JSON object; keys without a meaning are ignored.
func TestParseProfile(t *testing.T) {
	for text, want := range map[string]*PermissionProfile{
		`{}`:                      {},
		` {"name":"x","extra":1}`: {Name: "x"},
		`{"network":{"inbound":{"allow_host":["h"]}}}`: {Network: &NetworkPermissions{Inbound: &InboundPermissions{AllowHost: []string{"h"}}}},
		``:        nil,
		`null`:    nil,
		`[]`:      nil,
		`{`:       nil,
		`{} {}`:   nil,
		`name: x`: nil,
	} {
		got, err := ParseProfile(text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: got error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestParseAuthz: YAML or JSON; what an MCPServer has no use for is dropped.
func TestParseAuthz(t *testing.T) {
	const text = `{"version": "1", "type": "cedarv1", "cedar": {"policies": ["p"], "entities_json": "[{}]", "primary_upstream_provider": "x"}}`
	want := &Authz{Version: "1", Type: "cedarv1", Cedar: &Cedar{Policies: []string{"p"}, EntitiesJSON: "[{}]"}}
	for _, text := range []string{text, strings.NewReplacer(`"`, "", "[{}]", "'[{}]'").Replace(text)} {
		got, err := ParseAuthz(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"\n":                          "it is empty",
		"type: cedarv1":               "version is missing",
		"{version: v, type: x}":       `type is "x", and only "cedarv1" can be used`,
		"{version: v, type: cedarv1}": "cedar is missing",
		"{version: v, type: cedarv1, cedar: {policies: []}}":      "there is no policy",
		"{version: v, type: cedarv1, cedar: {policies: [p, '']}}": "policies[1] is blank",
		"{version: v, type: cedarv1, cedar: {policies: [p], entities_json: '{}'}}": "the entities are not a JSON list: " +
			"json: cannot unmarshal object into Go value of type []json.RawMessage",
		"{version: v, type: cedarv1, cedar: {policies: [p], entities_json: 'null'}}": "the entities are not a JSON list: they are null",
	} {
		if got, err := ParseAuthz(text); got != nil || err == nil || err.Error() != want {
			t.Errorf("%q: got %+v and error %v, want %s", text, got, err, want)
		}
	}
}

// TestInlineDocument: the text that ToolHive's operator writes for the same policy.
func TestInlineDocument(t *testing.T) {
	got, err := InlineDocument([]string{"permit(principal, action, resource);"}, NoEntities)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cedar":{"entities_json":"[]","policies":["permit(principal, action, resource);"]},"type":"cedarv1","version":"1.0"}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
