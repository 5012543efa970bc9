// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-freehold is the kubectl plugin that shows the owners of an object's fields, and settles conflicts
// about those of MCPServers: kubectl freehold.
package main

import (
	"context"
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways of logging in that kubectl has

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
)

// main leaves signals to Go, so that the first ends the plugin, as it ends kubectl: few requests of kubectl's libraries can be called off.
// What is written in several steps can be done again at any of them.
func main() { os.Exit(cmd.Run(context.Background(), cmd.OfProcess(), os.Args[1:])) }
