// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redisconn stands in for github.com/stacklok/toolhive-core/redisconn. It is the package of toolhive-core from which
// that was made, of an earlier release, under the new name.
package redisconn

import "freehold.invalid/toolhive-core/redis"

// What ToolHive uses of it.
type (
	Config         = redis.Config
	SentinelConfig = redis.SentinelConfig
	TLSConfig      = redis.TLSConfig
)

// What ToolHive calls.
var (
	BuildTLSConfig = redis.BuildTLSConfig
	NewClient      = redis.NewClient
)
