// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command nodeinit is the first process of a node, in mount, network, PID and UTS namespaces that were made for it.
// It sets up the node and starts its programs. When it ends, the kernel ends everything on the node; and it ends when
// its standard input does, so that no node outlives the process that made it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/freehold-dev/freehold/hack/node/internal/plan"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nodeinit:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if os.Getpid() != 1 || len(args) != 1 {
		return fmt.Errorf("this is for package node alone, which starts it as the first process of a namespace")
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := json.Unmarshal(content, &p); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if err := mountAll(p.Binds); err != nil {
		return err
	}
	if err := setUpNetwork(p.Hostname, p.Addresses, p.Routes); err != nil {
		return err
	}
	if err := forward(p.APIServer); err != nil {
		return err
	}
	if err := proxy(p.Proxy); err != nil {
		return err
	}

	// Whatever happens first ends the node, while programs are being started too.
	ended := make(chan error, 3)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	s := newSupervisor()
	go func() { ended <- s.reap() }()
	go func() {
		for _, program := range p.Programs {
			if err := s.start(program); err != nil {
				ended <- err
				return
			}
		}
	}()
	return <-ended
}
