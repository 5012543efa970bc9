// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configs reads the custom resources that MCPServers refer to: it decides which can be used, lists the objects that
// they refer to in turn, and computes their hashes. It has a row for each kind and for each field
// that refers to one. It is pure. The errors of its functions are for users: they name the field, say what is wrong with it, and hold no
// secret.
package configs
