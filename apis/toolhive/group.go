// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolhive names the API group of ToolHive's custom resources. Its versions are sub-packages.
package toolhive

// GroupName is ToolHive's API group. Freehold serves the same group, so that a ToolHive user's
// objects work unchanged.
const GroupName = "toolhive.stacklok.dev"
