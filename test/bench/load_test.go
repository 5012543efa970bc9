// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestMemoryLimitIsAsTheDocumentsAdvise(t *testing.T) {
	manifest, err := readDeployed()
	if err != nil {
		t.Fatal(err)
	}
	for servers, want := range map[int]string{
		100:  "GOMEMLIMIT=110MiB", // That of install.yaml.
		1000: "GOMEMLIMIT=110MiB",
		5000: "GOMEMLIMIT=422MiB", // 4,000 more, of 80 KiB each.
	} {
		env, err := manifest.limitedEnv(servers)
		if err != nil || !slices.Contains(env, want) {
			t.Errorf("%d MCPServers: the environment is %q, error %v, want %s", servers, env, err, want)
		}
	}
	unread := deployed{env: []string{"GOMEMLIMIT=1GiB"}}
	if _, err := unread.limitedEnv(1); err == nil {
		t.Error("a limit in another unit is taken for one in MiB")
	}
}

// TestTheBenchmarkLimitsNoMemory: ToolHive's operator and the raw applier have no limit either.
func TestTheBenchmarkLimitsNoMemory(t *testing.T) {
	manifest, err := readDeployed()
	if err != nil {
		t.Fatal(err)
	}
	env := manifest.unlimitedEnv()
	if text := strings.Join(env, " "); len(env) != len(manifest.env)-1 || strings.Contains(text, "GOMEMLIMIT") {
		t.Errorf("the environment is %q, that of install.yaml is %q", env, manifest.env)
	}
}
