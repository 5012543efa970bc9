// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

// Field managers of ToolHive, as they stand on objects that its v0.44.0 has made.
const (
	// ToolHiveOperator is the name under which ToolHive's operator updates; it is that of its program's file.
	ToolHiveOperator = "thv-operator"
	// ToolHiveRunner is the name under which every proxyrunner applies.
	ToolHiveRunner = "toolhive-container-manager"
)

// IsToolHive tells whether a field manager is one of ToolHive's.
func IsToolHive(manager string) bool { return manager == ToolHiveOperator || manager == ToolHiveRunner }
