// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs a real node for the local cluster of package cluster: containerd, kubelet, kube-proxy and CoreDNS.
// Containers run, Services have addresses, and names are resolved.
//
//	c, err := cluster.Start(ctx, cluster.Options{RealNodes: true})
//	...
//	n, err := node.Start(ctx, c, node.Options{Images: images.ForMCP()})
//	...
//	defer n.Stop()
//
// The node lives in mount, network, PID and UTS namespaces of its own. The network has no way out: nothing listens on
// the machine for it, no interface, route, firewall rule or kernel setting of the machine changes, and several nodes
// may run at a time. Sockets in the cluster's directory join the API server and the node. Control groups are named
// after the process that made them. When that process ends, however it does, the kernel ends everything on the node;
// the directories that a killed one leaves are removed by the next start.
//
// It needs Linux, root, and the Debian packages that hack/install-node-packages.sh installs; see Check. What the
// project builds itself comes from package binaries. Nothing is pulled from a registry: containerd holds the images
// that were imported, see package images.
package node
