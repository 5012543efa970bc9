// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
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
