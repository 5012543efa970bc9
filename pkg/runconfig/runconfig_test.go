// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSON: the form in which the proxyrunner's ConfigMap holds the document.
func TestJSON(t *testing.T) {
	profile := NetworkProfile()
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
    "name": "network",
    "network": {
      "outbound": {
        "insecure_allow_all": true
      },
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

// TestUnsendableCharacters: what no apply carries is escaped, in keys and values and whether the document is ours or another's, and
// reads as it was. All else stays as it is.
func TestUnsendableCharacters(t *testing.T) {
	const odd, fine = "\x7f\u0080\u0085\u009f\ufffe\uffff", "\x01~\u00a0\u2028é\ufffd\ufeff\U0001f600"
	authz, err := ParseAuthz(`{"version":"1.0","type":"httpv1","pdp":{"claim_mapping":"mpe","http":{"url":"http://h"},"\u0090":"\u0091"}}`, ClaimMapping{})
	if err != nil {
		t.Fatal(err)
	}
	document := &RunConfig{EnvVars: map[string]string{odd: fine, fine: odd}, Authz: authz}
	text, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	inline, err := InlineDocument([]string{odd + fine}, odd)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{text, inline} {
		if i := strings.IndexFunc(text, func(c rune) bool { return !Sendable(c) }); i >= 0 {
			t.Errorf("%q is in %s", text[i:i+2], text)
		}
	}
	var read struct {
		EnvVars map[string]string `json:"env_vars"`
		Authz   struct {
			PDP map[string]any `json:"pdp"`
		} `json:"authz_config"`
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document.EnvVars, read.EnvVars); diff != "" || read.Authz.PDP["\u0090"] != "\u0091" {
		t.Errorf("another meaning: %v, variables (-want +got):\n%s", read.Authz, diff)
	}
	var policy struct{ Cedar struct{ Policies []string } }
	if err := json.Unmarshal([]byte(inline), &policy); err != nil || policy.Cedar.Policies[0] != odd+fine {
		t.Errorf("another policy: %q, %v", policy.Cedar.Policies, err)
	}
	raw, err := json.MarshalIndent(&RunConfig{Name: fine}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := (&RunConfig{Name: fine}).JSON(); text != string(raw) {
		t.Errorf("a document that can be sent was changed to %s", text)
	}
}

// TestNetworkProfilesAreApart: nobody can spoil the next one's.
func TestNetworkProfilesAreApart(t *testing.T) {
	NetworkProfile().Network.Outbound.InsecureAllowAll = false
	if !NetworkProfile().Network.Outbound.InsecureAllowAll {
		t.Error("a profile was spoiled by the use of another")
	}
}
