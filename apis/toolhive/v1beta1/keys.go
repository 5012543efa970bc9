// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Keys of ToolHive on MCPServers and on what is made for them.
const (
	// Finalizer on an MCPServer is released once its children are taken care of.
	Finalizer = "mcpserver.toolhive.stacklok.dev/finalizer"
	// AnnotationRestartedAt on an MCPServer asks for a restart of the proxy; its value is an RFC 3339 time.
	// It stands on the proxy's pod template as well.
	AnnotationRestartedAt = "mcpserver.toolhive.stacklok.dev/restarted-at"
	// AnnotationRestartStrategy on an MCPServer is rolling (the default) or immediate.
	AnnotationRestartStrategy = "mcpserver.toolhive.stacklok.dev/restart-strategy"
	// AnnotationRunConfigChecksum on the proxy's pod template rolls the proxy when its RunConfig changes.
	AnnotationRunConfigChecksum = "toolhive.stacklok.dev/runconfig-checksum"
	// AnnotationContentChecksum on the RunConfig ConfigMap is the checksum of its content.
	AnnotationContentChecksum = "toolhive.stacklok.dev/content-checksum"
	// AnnotationGeneration on the backend's pod template is the proxyrunner's generation gate: a runner whose
	// own generation is lower than this value leaves the StatefulSet alone.
	AnnotationGeneration = "toolhive.stacklok.dev/mcpserver-generation"
)
