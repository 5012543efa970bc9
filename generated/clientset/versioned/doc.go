// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versioned is a typed client for MCPServers. Its methods Apply and ApplyStatus take the apply configurations of
// generated/applyconfiguration, which have only the fields that a program sets; the program owns those fields and no others.
// Package fake has a client for tests, which tracks owners without an API server.
package versioned
