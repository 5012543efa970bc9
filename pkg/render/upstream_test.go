// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// upstreamEnv names the directory with ToolHive's own files; defaultUpstream is where it lies when the
// variable is not set.
const (
	upstreamEnv     = "FREEHOLD_UPSTREAM"
	defaultUpstream = "../../../shared/upstream"
)

// upstreamRunnerImage is the image with which ToolHive's operator rendered its files.
const upstreamRunnerImage = "ghcr.io/stacklok/toolhive/proxyrunner:v0.62.0"

// upstreamCase is an MCPServer and what ToolHive made of it.
type upstreamCase struct {
	// name is the directory below golden-0.62.
	name   string
	server *v1beta1.MCPServer
	// options that stand for the settings of ToolHive's operator.
	options Options
	// recorded tells that the files are as ToolHive made them, to the letter.
	recorded bool
	// files by name, but for the MCPServer.
	files map[string][]byte
}

// refused tells whether ToolHive's operator rendered nothing.
func (c upstreamCase) refused() bool {
	_, ok := c.files["ERROR.txt"]
	return ok
}

// upstreamDirectory returns where ToolHive's files of a kind are, or skips the test when they are not here.
func upstreamDirectory(tb testing.TB, name string) string {
	tb.Helper()
	root := upstreamRoot()
	if root == "" {
		tb.Skipf("ToolHive's rendered objects are not here (%s); set %s to the directory that holds %s/", defaultUpstream, upstreamEnv, name)
	}
	return filepath.Join(root, name)
}

// upstreamRoot returns where ToolHive's files are; empty when they are not here.
func upstreamRoot() string {
	root := os.Getenv(upstreamEnv)
	if root == "" {
		root = filepath.FromSlash(defaultUpstream)
		if _, err := os.Stat(root); os.IsNotExist(err) {
			return ""
		}
	}
	return root
}

// readUpstream returns all of ToolHive's cases, or skips the test when its files are not here.
func readUpstream(tb testing.TB) []upstreamCase {
	tb.Helper()
	golden := upstreamDirectory(tb, "golden-0.62")
	var cases []upstreamCase
	err := filepath.WalkDir(golden, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "mcpserver.defaulted.yaml" {
			return err
		}
		name, err := filepath.Rel(golden, filepath.Dir(path))
		if err != nil {
			return err
		}
		cases = append(cases, readUpstreamCase(tb, filepath.ToSlash(name), filepath.Dir(path)))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(cases) == 0 {
		tb.Fatalf("there is no case in %s", golden)
	}
	return cases
}

func readUpstreamCase(tb testing.TB, name, dir string) upstreamCase {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	c := upstreamCase{name: name, server: &v1beta1.MCPServer{}, recorded: true, files: map[string][]byte{}}
	if strings.HasPrefix(name, "crafted/redis-default-tls/") {
		// As the environment of ToolHive's operator was, which redis-default-tls.yaml tells.
		c.options.DefaultRedis = &Redis{
			Address: "d:6379", PasswordSecret: "ds", PasswordKey: "redis-password", TLS: true, CASecret: "dca", CAKey: "ca.crt",
		}
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		if entry.Name() != "mcpserver.defaulted.yaml" {
			c.files[entry.Name()] = data
			continue
		}
		if err := yaml.UnmarshalStrict(data, c.server); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	return c
}
