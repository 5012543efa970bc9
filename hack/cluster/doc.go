// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane on loopback, for tests and for trying things out.
//
//	c, err := cluster.Start(ctx, cluster.Options{})
//	if err != nil { ... }
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.RESTConfig())
//
// It consists of etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, each its own process, so
// that a fault test can stop, freeze and start them one by one. kwok plays the nodes: pods are scheduled and turn Ready,
// but no container runs; see package node for a node where they do. The process that has started the cluster deletes the
// pods that are to go. The programs come from package binaries, which builds them on first use.
//
// What it guarantees: every process listens on 127.0.0.1 alone, or not at all; all of them die with the process
// that started them (on Linux even if that is killed); after Stop neither a process nor a file is left, but for a
// directory that the caller named. It works on Linux and macOS.
//
// Package audit reads the cluster's audit log. A cluster that runs already can take the place of a new one: see
// FromKubeconfig. Tests and tools may import this package, the operator must not.
package cluster
