// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
)

// nodes says in words what the pods run on.
func nodes(containers bool) string {
	if containers {
		return "for a real node"
	}
	return "fake nodes"
}

// canRunContainers returns an error that says why there can be no real node.
func canRunContainers() error {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return errors.New("a real node joins a control plane of its own, not the cluster that KUBECONFIG names")
	}
	return node.Check()
}

// startNode starts a node with ToolHive's proxyrunner and a server under the name of that of the samples.
func startNode(ctx context.Context, c *cluster.Cluster, progress io.Writer) (*node.Node, error) {
	return node.Start(ctx, c, node.Options{
		Images: []string{images.ProxyRunner, images.Sample, images.Client}, Progress: progress,
	})
}
