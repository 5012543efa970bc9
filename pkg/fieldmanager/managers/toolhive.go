// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

// Field managers of ToolHive, as they appear on objects that its v0.44.0 created.
const (
	// ToolHiveOperator is the name under which ToolHive's operator updates: the file name of its program.
	ToolHiveOperator = "thv-operator"
	// ToolHiveRunner is the name under which every proxyrunner applies.
	ToolHiveRunner = "toolhive-container-manager"
)

// IsToolHive reports whether a field manager is one of ToolHive's.
func IsToolHive(manager string) bool { return manager == ToolHiveOperator || manager == ToolHiveRunner }
