// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan defines what package node has the first process of a node do. It is passed as JSON in a file.
package plan

// Plan describes a node from the inside.
type Plan struct {
	// Hostname of the node, in its UTS namespace.
	Hostname string
	// Binds are directories of the machine that take the place of others on the node, in this order.
	Binds []Bind
	// Addresses, as CIDR, are given to the node's only interface. No cable leads out of it.
	Addresses []string
	// Routes, as CIDR, lead to that interface: what is sent there must have another address before it gets there.
	Routes []string
	// APIServer is where the node finds the API server.
	APIServer Forward
	// Proxy is the path of the socket of the HTTP proxy into the node's network.
	Proxy string
	// Programs are started in this order, and run as long as the node does.
	Programs []Program
}

// Bind is a bind mount.
type Bind struct {
	Source, Target string
}

// Forward lets connections to an address of the node end at a Unix socket of the machine.
type Forward struct {
	Address, Socket string
}

// Program is a process of the node.
type Program struct {
	Name string
	Path string
	Args []string
	// After is the path of a file. The program, and those after it, are not started before that exists. Empty: they
	// need not wait.
	After string
	// Log is the path of the file that its output is appended to.
	Log string
	// Ready is the path of a Unix socket that the program listens on before the next one is started. Empty: the next
	// one need not wait.
	Ready string
}
