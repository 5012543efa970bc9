// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
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
		env, err := manifest.envFor(servers)
		if err != nil || !slices.Contains(env, want) {
			t.Errorf("%d MCPServers: the environment is %q, error %v, want %s", servers, env, err, want)
		}
	}
	unread := deployed{env: []string{"GOMEMLIMIT=1GiB"}}
	if _, err := unread.envFor(1); err == nil {
		t.Error("a limit in another unit is taken for one in MiB")
	}
}
