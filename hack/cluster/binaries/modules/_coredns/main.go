// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with the plugins that name Services and pods of a local node, and no others: those that
// talk to cloud providers make up most of the usual program.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// Each query passes through the plugins in this order, whatever their order in the configuration.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes"}
	coremain.Run()
}
