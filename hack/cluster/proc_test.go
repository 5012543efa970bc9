// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// isZombie tells whether the process has ended, but is still listed because nobody has asked for its exit status:
// where the first process of a container does not care for orphans.
func isZombie(t *testing.T, pid int) bool {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	// The state follows the name, which is in parentheses and may hold anything.
	_, state, found := strings.Cut(string(content[bytes.LastIndexByte(content, ')'):]), " ")
	return found && strings.HasPrefix(state, "Z")
}

// testListeners looks at all listening sockets of the cluster's processes.
func (s suite) listeners(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	listeners := map[string]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
			// Columns: 1 is the local address in hexadecimal, 3 the state, 9 the inode. 0A is listening.
			if columns := strings.Fields(line); columns[3] == "0A" {
				listeners["socket:["+columns[9]+"]"] = columns[1]
			}
		}
	}
	const loopback = "0100007F:"
	count := 0
	for component, pid := range s.c.PIDs() {
		descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, descriptor := range descriptors {
			target, err := os.Readlink(descriptor)
			if err != nil {
				// Closed meanwhile.
				continue
			}
			address, listens := listeners[target]
			if !listens {
				continue
			}
			count++
			if !strings.HasPrefix(address, loopback) {
				t.Errorf("%s listens on %s, which is not 127.0.0.1", component, address)
			}
			if component != cluster.Etcd && component != cluster.APIServer {
				t.Errorf("%s listens, but nobody needs it to", component)
			}
		}
	}
	if count < 2 {
		t.Errorf("found %d listening sockets, etcd and the API server have at least one each", count)
	}
}
