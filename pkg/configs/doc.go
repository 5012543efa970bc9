// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configs knows the custom resources that MCPServers refer to: which of them can be used, what they refer to
// themselves, and what their hash is. It is pure. The errors of its functions are for users: they name the field, say what is
// wrong with it, and hold no secret.
package configs
