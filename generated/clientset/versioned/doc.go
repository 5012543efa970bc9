// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versioned is a typed client for MCPServers. Its methods Apply and ApplyStatus take the configurations of
// generated/applyconfiguration, which name only what is set; with them a program owns what it sets and nothing else.
// Package fake has a client without an API server that keeps track of owners, for tests.
package versioned
