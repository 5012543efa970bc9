// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
)

// nodeKind is the value of the flag that says what pods run on.
type nodeKind string

const (
	fakeNode nodeKind = "fake"
	realNode nodeKind = "real"
)

// Set is that of a flag.
func (k *nodeKind) Set(value string) error {
	switch kind := nodeKind(value); kind {
	case fakeNode, realNode:
		*k = kind
		return nil
	default:
		return fmt.Errorf("want %s or %s", fakeNode, realNode)
	}
}

// String is that of a flag.
func (k *nodeKind) String() string { return string(*k) }

// Type is that of a flag.
func (*nodeKind) Type() string { return "kind" }

// tools returns the programs that a cluster with such nodes needs, and with earlier controllers if it is to have them.
func (k *nodeKind) tools(earlier bool) []binaries.Tool {
	tools := binaries.All()
	if earlier {
		tools = append(tools, binaries.EarlierControllerManager)
	}
	if *k == realNode {
		tools = append(tools, binaries.OfNode()...)
	}
	return tools
}

// startNode starts the real node of a cluster that is to have one, with all images that there are. Otherwise it
// returns nil.
func startNode(ctx context.Context, c *cluster.Cluster, options cluster.Options) (*node.Node, error) {
	if !options.RealNodes {
		return nil, nil //nolint:nilnil // no node is no error
	}
	return node.Start(ctx, c, node.Options{Images: images.ForMCP(), Progress: options.Progress})
}

// wait returns when ctx ends, with nil, or when a part of the cluster has ended without being stopped.
func wait(ctx context.Context, c *cluster.Cluster, n *node.Node) error {
	if n == nil {
		return c.Wait(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-n.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-n.Done():
		return n.Err()
	default:
		return nil
	}
}
