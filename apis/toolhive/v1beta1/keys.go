// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Finalizer on an MCPServer is ToolHive's. Freehold releases it after it has dealt with the children.
const Finalizer = "mcpserver.toolhive.stacklok.dev/finalizer"

// Finalizers of the kinds that an MCPServer refers to. ToolHive defines them.
const (
	// FinalizerOIDCConfig on an MCPOIDCConfig holds its deletion while workloads refer to it.
	FinalizerOIDCConfig = "mcpoidcconfig.toolhive.stacklok.dev/finalizer"
	// FinalizerAuthzConfig on an MCPAuthzConfig holds its deletion while workloads refer to it.
	FinalizerAuthzConfig = "mcpauthzconfig.toolhive.stacklok.dev/finalizer"
	// FinalizerExternalAuthConfig on an MCPExternalAuthConfig holds its deletion while workloads refer to it.
	FinalizerExternalAuthConfig = "mcpexternalauthconfig.toolhive.stacklok.dev/finalizer"
	// FinalizerToolConfig on an MCPToolConfig holds its deletion while workloads refer to it.
	FinalizerToolConfig = "toolhive.stacklok.dev/toolconfig-finalizer"
	// FinalizerTelemetryConfig on an MCPTelemetryConfig holds its deletion while workloads refer to it.
	FinalizerTelemetryConfig = "mcptelemetryconfig.toolhive.stacklok.dev/finalizer"
	// FinalizerWebhookConfig on an MCPWebhookConfig holds its deletion while workloads refer to it.
	FinalizerWebhookConfig = "mcpwebhookconfig.toolhive.stacklok.dev/finalizer"
	// FinalizerGroup on an MCPGroup lets the operator update the members before the group is deleted. It never waits for
	// them.
	FinalizerGroup = "toolhive.stacklok.dev/mcpgroup-finalizer"
)

// Annotations that ToolHive defines.
const (
	// AnnotationRestartedAt on an MCPServer requests a restart of the proxy; its value is an RFC 3339 time. Freehold also
	// sets it on the proxy's pod template.
	AnnotationRestartedAt = "mcpserver.toolhive.stacklok.dev/restarted-at"
	// AnnotationRestartStrategy on an MCPServer is rolling (the default) or immediate.
	AnnotationRestartStrategy = "mcpserver.toolhive.stacklok.dev/restart-strategy"
	// AnnotationLastProcessedRestart on an MCPServer is the last restarted-at that ToolHive's operator has answered. Freehold, which
	// needs no such record, sets it only when it hands the MCPServer back.
	AnnotationLastProcessedRestart = "mcpserver.toolhive.stacklok.dev/last-processed-restart"
	// AnnotationRunConfigChecksum on the proxy's pod template rolls the proxy when its RunConfig changes.
	AnnotationRunConfigChecksum = "toolhive.stacklok.dev/runconfig-checksum"
	// AnnotationAuthServerCAChecksum on the proxy's pod template rolls the proxy when certificate authorities of its
	// authorization server change.
	AnnotationAuthServerCAChecksum = "toolhive.stacklok.dev/authserver-ca-checksum"
	// AnnotationContentChecksum on the RunConfig ConfigMap is the checksum of its content.
	AnnotationContentChecksum = "toolhive.stacklok.dev/content-checksum"
	// AnnotationGeneration on the backend's pod template is the proxyrunner's generation gate: a runner whose
	// own generation is lower than this value leaves the StatefulSet alone.
	AnnotationGeneration = "toolhive.stacklok.dev/mcpserver-generation"
)

// AnnotationPrefix begins every annotation that Freehold adds.
const AnnotationPrefix = "freehold.dev/"

// Annotations of Freehold that users set on an MCPServer.
const (
	// AnnotationTake on an MCPServer asks Freehold to take contested fields from their owners, once. The condition
	// FieldsTaken has the answer.
	AnnotationTake = "freehold.dev/take"
	// AnnotationYield on an MCPServer asks Freehold to leave fields to other managers, for as long as the annotation is
	// set. The condition FieldsYielded has the answer.
	AnnotationYield = "freehold.dev/yield"
	// AnnotationTakeover on an MCPServer, with the value "approved", allows Freehold to take it over from ToolHive. It is
	// required if the operator runs with --takeover=manual.
	AnnotationTakeover = "freehold.dev/takeover"
	// AnnotationBackendUpdateStrategy on an MCPServer sets what replaces the pods of its backend after a change of their
	// template: Kubernetes with RollingUpdate, the default, or Freehold, through the eviction API, with OnDelete.
	AnnotationBackendUpdateStrategy = "freehold.dev/backend-update-strategy"
	// AnnotationBackendRollout on an MCPServer with the update strategy OnDelete pauses the rollout of its backend, with
	// the value "paused", for as long as the annotation is set.
	AnnotationBackendRollout = "freehold.dev/backend-rollout"
)

// Values of annotations that users set.
const (
	// TakeoverApproved is the value of AnnotationTakeover.
	TakeoverApproved = "approved"
	// BackendRolloutPaused is the value of AnnotationBackendRollout.
	BackendRolloutPaused = "paused"
)

// TakeoverProgress is a value of AnnotationTakeoverProgress.
type TakeoverProgress string

// Values of AnnotationTakeoverProgress.
const (
	// TakeoverUnderWay means that a takeover was begun.
	TakeoverUnderWay TakeoverProgress = "UnderWay"
	// TakeoverDone means that Freehold has taken over every object of ToolHive's. It takes none again without being asked.
	TakeoverDone TakeoverProgress = "Done"
)

// Annotations that Freehold writes for itself.
const (
	// AnnotationTakeRecord on an MCPServer records the claims of other field managers that a request to take ends, so that
	// Freehold ends each once.
	AnnotationTakeRecord = "freehold.dev/take-record"
	// AnnotationTakeoverProgress on an MCPServer records how far its takeover from ToolHive is: UnderWay, before anything is taken,
	// and then Done. It counts only while the field manager freehold-takeover owns it. MCPServers that Freehold did not take over
	// do not have it.
	AnnotationTakeoverProgress = "freehold.dev/takeover-progress"
	// AnnotationSource on a child has the UID and the generation of the MCPServer that its content was last rendered from.
	// It changes only together with the content.
	AnnotationSource = "freehold.dev/source"
	// AnnotationCAChecksum on the proxy's pod template rolls the proxy when certificate authorities of a token issuer or a
	// telemetry collector change: the proxyrunner reads them once. It is their SHA-256 sum, in hexadecimal.
	AnnotationCAChecksum = "freehold.dev/ca-checksum"
	// AnnotationReferences on a child has the states of the objects that the MCPServer referred to when the content was
	// last rendered, sorted by name and joined by commas. Each is kind/name=UID/generation@resourceVersion; the generation
	// of kinds that have none is 0. It changes together with the content, or when it lacks one of the objects. Children
	// that depend on no such object do not have it.
	AnnotationReferences = "freehold.dev/references"
	// AnnotationReplicasSource on a workload has the UID and the generation of the MCPServer from which spec.replicas was
	// last written, or given up. The writers of replicas set it; the other writers set freehold.dev/source.
	AnnotationReplicasSource = "freehold.dev/replicas-source"
	// AnnotationReplicasWritten on a workload has the number that the writer of replicas last wrote to spec.replicas. The writer
	// removes it when it gives up the number. Another number that no field manager owns was set by another client.
	AnnotationReplicasWritten = "freehold.dev/replicas-written"
	// AnnotationConfigUIDs on the proxy's pod template has the UIDs of Freehold's ConfigMaps that the template names, in
	// its order. If a ConfigMap is deleted and created again, Kubernetes replaces the pods that may have read the earlier
	// one.
	AnnotationConfigUIDs = "freehold.dev/config-uids"
	// AnnotationAttachedTo on the pod template of a proxy with transport stdio names the process that its runner is
	// attached to.
	//
	// The runner is attached to the input and output of one process, and does not recover when that process ends. Its
	// attempts to attach while the pod is replaced leave readers behind, each of which swallows one message of a client. If
	// its first check finds the StatefulSet without a ready pod, it stops permanently, with its own pod Ready. So Freehold
	// rolls the proxy out for each new process, which starts a new runner.
	AnnotationAttachedTo = "freehold.dev/attached-to"
)

// LabelMetricsAccess on a namespace, with the value "true", lets its pods read the operator's metrics: the operator's
// NetworkPolicy requires it.
const LabelMetricsAccess = "freehold.dev/metrics-access"

// LabelAppManagedBy on the children of an MCPServer, though not on their pods, is AppManagedBy, unless spec.resourceOverrides sets it.
const LabelAppManagedBy = "app.kubernetes.io/managed-by"

// AppManagedBy is the value of LabelAppManagedBy.
const AppManagedBy = "freehold"

// Labels that ToolHive puts on the children of an MCPServer.
const (
	// LabelApp on the proxy's objects is mcpserver, and on the backend's the MCPServer's name.
	LabelApp = "app"
	// LabelAppName on the proxy's objects is mcpserver.
	LabelAppName = "app.kubernetes.io/name"
	// LabelAppInstance on the proxy's objects is the MCPServer's name.
	LabelAppInstance = "app.kubernetes.io/instance"
	// LabelToolHive is true on the objects of the proxy and of the backend.
	LabelToolHive = "toolhive"
	// LabelToolHiveName on the objects of the proxy and of the backend is the MCPServer's name.
	LabelToolHiveName = "toolhive-name"
	// LabelToolHiveBaseName on the backend's objects is the MCPServer's name.
	LabelToolHiveBaseName = "toolhive-basename"
	// LabelToolHiveTransport on the backend's objects is the MCPServer's transport.
	LabelToolHiveTransport = "toolhive-transport"
	// LabelToolHivePort on the backend's objects is the port of the proxy.
	LabelToolHivePort = "toolhive-port"
	// LabelComponent on the RunConfig's ConfigMap is run-config.
	LabelComponent = "toolhive.stacklok.io/component"
	// LabelMCPServer on the RunConfig's ConfigMap is the MCPServer's name.
	LabelMCPServer = "toolhive.stacklok.io/mcp-server"
	// LabelManagedBy on the RunConfig's ConfigMap is toolhive-operator.
	LabelManagedBy = "toolhive.stacklok.io/managed-by"
	// LabelAuthz on the ConfigMap of an inline authorization policy is inline.
	LabelAuthz = "toolhive.stacklok.io/authz"
)
