// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package externalversions has informers for MCPServers: caches that follow the API server, handlers that receive changes, and
// listers that read from the caches.
package externalversions
