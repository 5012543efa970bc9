// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The form in which the proxyrunner's ConfigMap holds the document.
func TestADocumentHasTheFormOfToolHivesConfigMap(t *testing.T) {
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

// TestNetworkProfilesAreApart: nobody can spoil the next one's.
func TestNetworkProfilesAreApart(t *testing.T) {
	NetworkProfile().Network.Outbound.InsecureAllowAll = false
	if !NetworkProfile().Network.Outbound.InsecureAllowAll {
		t.Error("a profile was spoiled by the use of another")
	}
}
