// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller brings what MCPServers ask for about: it watches, decides which keys to look at, reads
// cached state, and hands intents to package apply. It reads from caches only.
package controller
