// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package externalversions has informers for MCPServers: caches that follow the API server, with handlers that are told
// of changes, and listers that read from them.
package externalversions
