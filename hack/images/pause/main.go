// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause holds the namespaces of a pod. It does nothing until a signal ends it.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
