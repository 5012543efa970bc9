// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-freehold is the kubectl plugin that shows the owners of an object's fields, and settles conflicts
// about those of MCPServers: kubectl freehold.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways of logging in that kubectl has

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cmd.Run(ctx, cmd.OfProcess(), os.Args[1:])
	stop()
	os.Exit(code)
}
