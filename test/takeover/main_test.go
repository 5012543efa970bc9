// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover holds the suites in which ToolHive was there first: its own operator, and its own proxyrunners on
// a real node, make the MCPServers that Freehold then takes over. They share one cluster; each test has a namespace
// of its own.
//
// Where no real node can run, nothing is tested, and the reason is printed. With FREEHOLD_NODE=required that is a
// failure.
package takeover

import (
	"flag"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the cluster of all tests of this package, and machine is its node.
var (
	env     *harness.Env
	machine *node.Node
)

// atOnce is how many tests run, and how many MCPServers of a fleet are made, at a time.
const atOnce = 3

func TestMain(m *testing.M) {
	flag.Parse()
	harness.AtOnce(atOnce)
	options := cluster.Options{AuditBodies: true, RealNodes: true}
	os.Exit(harness.Suite{Env: &env, Node: &machine, Options: options}.Run(m))
}

// upstream runs ToolHive's operator for the namespace until the test ends or it is stopped. Its log is shown when the
// test has failed.
func upstream(t *testing.T, ns *harness.Namespace) *toolhive.Operator {
	t.Helper()
	p, err := toolhive.Start(t.Context(), env.Cluster, toolhive.Options{Dir: t.TempDir(), Namespaces: []string{ns.Name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			showEnd(t, p.Log())
		}
	})
	return p
}

// shown is how much of a log is shown, in bytes.
const shown = 16 << 10

func showEnd(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("%s:\n%s", path, text[max(0, len(text)-shown):])
}
