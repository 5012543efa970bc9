// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node holds the suites that need a real node: ToolHive's own proxyrunner, MCP servers that run, and clients
// that call them from pods. They share one cluster; each test has a namespace of its own.
//
// Where no real node can run, nothing is tested, and the reason is printed. With FREEHOLD_NODE=required that is a
// failure.
package node

import (
	"flag"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the cluster of all tests of this package, and machine is its node.
var (
	env     *harness.Env
	machine *node.Node
)

// atOnce is how many tests run at a time: they wait most of the time, for pods that start and for the kubelet to look again.
const atOnce = 4

func TestMain(m *testing.M) {
	flag.Parse()
	harness.AtOnce(atOnce)
	options := cluster.Options{AuditBodies: true, RealNodes: true}
	os.Exit(harness.Suite{Env: &env, Node: &machine, Options: options, Check: checkRunners}.Run(m))
}
