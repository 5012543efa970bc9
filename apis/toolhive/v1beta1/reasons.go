// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// The name of each constant has its value, and its comment ends with the conditions that have it, as Type=Status. Stalled=True
// repeats the reason of its cause: an invalid spec, a refused write or a stuck rollout. Ready=False repeats the reason of a
// refused write, and Reconciling=True that of a delayed one.

// Reasons of conditions about a spec that Freehold cannot render.
const (
	// ReasonUnknownField means that the spec has a field of the CRD in the cluster that this version of Freehold does not
	// know. On SpecValid=False.
	ReasonUnknownField = "UnknownField"
	// ReasonDroppedField means that the manifest that kubectl last applied has a field that the CRD in the cluster does not have, so that
	// the API server dropped it. On SpecValid=False.
	ReasonDroppedField = "DroppedField"
	// ReasonMalformedSpec means that a value has another type than this version of Freehold expects. On SpecValid=False.
	ReasonMalformedSpec = "MalformedSpec"
	// ReasonInvalidName means that no valid names of Services, labels or pods can be derived from a name. On
	// SpecValid=False.
	ReasonInvalidName = "InvalidName"
	// ReasonInvalidImage means that the image is missing or cannot be passed to the proxyrunner. On SpecValid=False.
	ReasonInvalidImage = "InvalidImage"
	// ReasonInvalidTransport means that ToolHive does not know the transport or the proxyMode. On SpecValid=False.
	ReasonInvalidTransport = "InvalidTransport"
	// ReasonInvalidPort means that a port is outside 1 to 65535. On SpecValid=False.
	ReasonInvalidPort = "InvalidPort"
	// ReasonInvalidReplicas means that a number of replicas is negative. On SpecValid=False.
	ReasonInvalidReplicas = "InvalidReplicas"
	// ReasonInvalidSessionAffinity means that Kubernetes does not know the session affinity. On SpecValid=False.
	ReasonInvalidSessionAffinity = "InvalidSessionAffinity"
	// ReasonInvalidQuantity means that a resource quantity cannot be used. On SpecValid=False.
	ReasonInvalidQuantity = "InvalidQuantity"
	// ReasonInvalidEnv means that the name or the value of an environment variable cannot be used. On SpecValid=False.
	ReasonInvalidEnv = "InvalidEnv"
	// ReasonInvalidSecretRef means that a reference names a Secret that cannot exist. On SpecValid=False.
	ReasonInvalidSecretRef = "InvalidSecretRef"
	// ReasonInvalidVolume means that a volume cannot be mounted. On SpecValid=False.
	ReasonInvalidVolume = "InvalidVolume"
	// ReasonInvalidServiceAccount means that the spec names a ServiceAccount that cannot exist. On SpecValid=False.
	ReasonInvalidServiceAccount = "InvalidServiceAccount"
	// ReasonInvalidMetadata means that Kubernetes does not accept a label or an annotation. On SpecValid=False.
	ReasonInvalidMetadata = "InvalidMetadata"
	// ReasonInvalidLimit means that a limit of the proxy cannot be used. On SpecValid=False.
	ReasonInvalidLimit = "InvalidLimit"
	// ReasonInvalidSessionStorage means that the session store lacks settings that it needs. On SpecValid=False.
	ReasonInvalidSessionStorage = "InvalidSessionStorage"
	// ReasonInvalidAnnotation means that an annotation of Freehold has an invalid value. On SpecValid=False.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonInvalidPodTemplateSpec means that podTemplateSpec is not a pod template, or that no API server would accept it.
	// On PodTemplateValid=False.
	ReasonInvalidPodTemplateSpec = "InvalidPodTemplateSpec"
	// ReasonInvalidRateLimit means that a rate limit cannot be enforced. On RateLimitConfigValid=False.
	ReasonInvalidRateLimit = "InvalidRateLimit"
	// ReasonPerUserRequiresAuth means that a limit per user is set but the proxy does not identify users. On
	// RateLimitConfigValid=False.
	ReasonPerUserRequiresAuth = "PerUserRequiresAuth"
	// ReasonAuthzConfigMapNotFound means that the ConfigMap, or its key, does not exist. On AuthzConfigValidated=False.
	ReasonAuthzConfigMapNotFound = "AuthzConfigMapNotFound"
	// ReasonInvalidAuthzConfig means that the authorization configuration cannot be used. On AuthzConfigValidated=False.
	ReasonInvalidAuthzConfig = "InvalidAuthzConfig"
)

// Reasons of conditions about a spec that works, but not as written.
const (
	// ReasonDuplicatesMerged means that the spec sets one name to different values, and Freehold uses one of them. On
	// SpecValid=True.
	ReasonDuplicatesMerged = "DuplicatesMerged"
	// ReasonFieldsIgnored means that fields of podTemplateSpec, authzConfig or sessionStorage have no effect. On SpecValid=True.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonNoServerContainer means that podTemplateSpec has containers and none called mcp, so it sets nothing of the MCP server's
	// container. On SpecValid=True.
	ReasonNoServerContainer = "NoServerContainer"
	// ReasonProxyOnly means that the proxy alone has resources or volumes, and podTemplateSpec gives the MCP server's container
	// nothing like it. The message has the podTemplateSpec that does. On SpecValid=True.
	ReasonProxyOnly = "ProxyOnly"
	// ReasonPullSecretsOfOneTier means that one of proxy and MCP server lacks pull secrets that the other has and that it may need. On
	// SpecValid=True.
	ReasonPullSecretsOfOneTier = "PullSecretsOfOneTier"
	// ReasonRunnerTooOld means that the proxyrunner in use ignores a field. On SpecValid=False, where the MCPServer would
	// have less protection than it asks for; Freehold then writes nothing. On SpecValid=True otherwise.
	ReasonRunnerTooOld = "RunnerTooOld"
	// ReasonRunnerEnforcesLess means that the proxyrunner in use is too old to enforce the whole of a tool filter, of authorization
	// or of a webhook. The message says what it lets through, and which image does not. On ToolConfigRefValidated=True,
	// AuthzConfigRefValidated=True, AuthzConfigValidated=True and WebhookConfigValidated=True.
	ReasonRunnerEnforcesLess = "RunnerEnforcesLess"
	// ReasonConfigNotEnforced means that what is referred to can be used, but that the proxy runs with something else, such as after kubectl
	// rollout undo: the API server refuses to change it, or another field manager owns a part of it. On OIDCConfigRefValidated=False,
	// AuthzConfigRefValidated=False, ExternalAuthConfigValidated=False, AuthServerRefValidated=False, TelemetryConfigRefValidated=False,
	// WebhookConfigValidated=False, ToolConfigRefValidated=False and AuthzConfigValidated=False.
	ReasonConfigNotEnforced = "ConfigNotEnforced"
	// ReasonRunnerVersionUnknown means that the tag of the proxyrunner's image does not show whether it supports a field of
	// the MCPServer, or of an object that it refers to, that it may ignore. On SpecValid=True.
	ReasonRunnerVersionUnknown = "RunnerVersionUnknown"
	// ReasonPermissionProfileUnsupported means that a permission profile is set, which has no effect. On SpecValid=True.
	ReasonPermissionProfileUnsupported = "PermissionProfileUnsupported"
	// ReasonUnknownPermissionProfile meant that ToolHive does not have the built-in permission profile. On SpecValid=False
	// of earlier releases.
	//
	// Deprecated: permission profiles have no effect, so none is invalid. The next release removes this constant.
	ReasonUnknownPermissionProfile = "UnknownPermissionProfile"
	// ReasonPermissionProfileNotFound meant that a ConfigMap, or its key, does not exist. On SpecValid=False of earlier
	// releases.
	//
	// Deprecated: permission profiles have no effect, so Freehold does not read them. The next release removes this constant.
	ReasonPermissionProfileNotFound = "PermissionProfileNotFound"
	// ReasonInvalidPermissionProfile meant that a permission profile cannot be read. On SpecValid=False of earlier
	// releases.
	//
	// Deprecated: permission profiles have no effect, so Freehold does not read them. The next release removes this constant.
	ReasonInvalidPermissionProfile = "InvalidPermissionProfile"
	// ReasonRestartRequestIgnored means that a restart request is not an RFC 3339 time. On SpecValid=True.
	ReasonRestartRequestIgnored = "RestartRequestIgnored"
	// ReasonNotPaused means that a rollout continues despite a request to pause it, because Kubernetes drives it. On
	// SpecValid=True.
	ReasonNotPaused = "NotPaused"
	// ReasonStdioTransportCapAt1 means that the spec asks for more replicas than 1, and Freehold keeps their number at 1. On
	// StdioReplicaCapped=True.
	ReasonStdioTransportCapAt1 = "StdioTransportCapAt1"
	// ReasonStdioReplicasReset means that another field manager set a number of replicas above 1, and Freehold set it back. On
	// StdioReplicaCapped=True.
	ReasonStdioReplicasReset = "StdioReplicasReset"
	// ReasonSessionStorageMissingForReplicas means that several proxies do not share sessions, or what their authorization
	// server keeps. On SessionStorageWarning=True.
	ReasonSessionStorageMissingForReplicas = "SessionStorageMissingForReplicas"
	// ReasonSessionsNotKept means that a rollout replaces the proxyrunner by one that does not serve the sessions which the
	// earlier one stored in Redis. On SessionStorageWarning=True.
	ReasonSessionsNotKept = "SessionsNotKept"
	// ReasonPrimaryUpstreamProviderIgnored means that a deprecated field is set, which has no effect. On
	// AuthzPrimaryUpstreamProviderIgnored=True.
	ReasonPrimaryUpstreamProviderIgnored = "PrimaryUpstreamProviderIgnored"
	// ReasonPrimaryUpstreamProviderDenies means that an authorization configuration in a ConfigMap evaluates requests by
	// tokens which no proxy has. On AuthzConfigValidated=True.
	ReasonPrimaryUpstreamProviderDenies = "PrimaryUpstreamProviderDenies"
)

// Reasons of conditions about a valid spec.
const (
	// ReasonValid means that the spec can be used as it is. On SpecValid=True.
	ReasonValid = "Valid"
	// ReasonValidPodTemplateSpec means that podTemplateSpec can be used. On PodTemplateValid=True.
	ReasonValidPodTemplateSpec = "ValidPodTemplateSpec"
	// ReasonAuthzConfigValid means that authzConfig can be used. On AuthzConfigValidated=True.
	ReasonAuthzConfigValid = "AuthzConfigValid"
	// ReasonRateLimitConfigValid means that rateLimiting can be enforced. On RateLimitConfigValid=True.
	ReasonRateLimitConfigValid = "RateLimitConfigValid"
	// ReasonRateLimitNotApplicable means that rateLimiting is not set. On RateLimitConfigValid=True.
	ReasonRateLimitNotApplicable = "RateLimitNotApplicable"
	// ReasonStdioReplicaCapNotActive means that Freehold keeps no number of replicas at 1. On StdioReplicaCapped=False.
	ReasonStdioReplicaCapNotActive = "StdioReplicaCapNotActive"
	// ReasonSessionStorageConfigured means that the proxies store their sessions in Redis. On SessionStorageWarning=False.
	ReasonSessionStorageConfigured = "SessionStorageConfigured"
	// ReasonSessionStorageWarningNotApplicable means that a single proxy needs no shared session store. On
	// SessionStorageWarning=False.
	ReasonSessionStorageWarningNotApplicable = "SessionStorageWarningNotApplicable"
)

// Reasons of conditions about writes.
const (
	// ReasonNoConflict means that Freehold owns every field that it sets. On FieldsOwned=True.
	ReasonNoConflict = "NoConflict"
	// ReasonFieldManagerConflict means that another field manager owns a field for which Freehold wants a different value, or that
	// ToolHive's operator writes to an object that Freehold has taken over. On FieldsOwned=False, and on Stalled=True where another
	// field manager owns the condition FieldsOwned as well.
	ReasonFieldManagerConflict = "FieldManagerConflict"
	// ReasonObjectNotOurs means that an object with a child's name exists and has another owner. On FieldsOwned=False.
	ReasonObjectNotOurs = "ObjectNotOurs"
	// ReasonSelectedByService means that a Service selects pods that were not made for the MCPServer. On ForeignPods=True.
	ReasonSelectedByService = "SelectedByService"
	// ReasonApplied means that the API server has accepted every object. On Applied=True.
	ReasonApplied = "Applied"
	// ReasonTooLarge means that the MCPServer, or an object that it refers to, is larger than --max-object-size, or has a list with more
	// than 1024 entries. Freehold keeps nothing of its spec and leaves the children as they are. On SpecValid=False and Ready=False, and on
	// Valid=False of a configuration.
	ReasonTooLarge = "TooLarge"
	// ReasonInvalid means that the API server's validation refuses an object. On Applied=False.
	ReasonInvalid = "Invalid"
	// ReasonUnappliable means that no apply can carry an object, for example because a list in it has one key twice. On
	// Applied=False.
	ReasonUnappliable = "Unappliable"
	// ReasonAltered means that the API server has stored an object otherwise than Freehold sent it, as a mutating admission policy or
	// webhook makes it do. On Applied=False where that binds a pod to another policy, process or address, and otherwise on Applied=True.
	ReasonAltered = "Altered"
	// ReasonUndone means that other clients undo again and again what Freehold writes, so that it waits before it writes the object again.
	// On Applied=False; and on Applied=True where they create again an object that Freehold deletes, since it is not wanted any more.
	ReasonUndone = "Undone"
	// ReasonSecondOperator means the same, and that another process writes the object under Freehold's field managers, as a second operator
	// with other settings does. On Applied=False.
	ReasonSecondOperator = "SecondOperator"
	// ReasonForbidden means that authorization, a quota or an admission policy refuses a write. On Applied=False.
	ReasonForbidden = "Forbidden"
	// ReasonNewerSource means that an object was written from a newer generation of the MCPServer, or a newer state of an
	// object that it refers to, than the operator has seen. On Applied=False, when it persists.
	ReasonNewerSource = "NewerSource"
	// ReasonObjectChanging means that an object changes faster than Freehold can write it. On Applied=False, when it
	// persists.
	ReasonObjectChanging = "ObjectChanging"
	// ReasonObjectTerminating means that an object, or its namespace, is being deleted. On Applied=False, when it persists.
	ReasonObjectTerminating = "ObjectTerminating"
	// ReasonRetrying means that the API server could not answer a write. On Applied=False, when it persists.
	ReasonRetrying = "Retrying"
	// ReasonUnsettled means that not every write has had an answer yet. On FieldsOwned=Unknown and Applied=Unknown.
	ReasonUnsettled = "Unsettled"
)

// Reasons of conditions about progress.
const (
	// ReasonReady means that everything that the spec asks for is written and serves. On Ready=True.
	ReasonReady = "Ready"
	// ReasonNotReady means on Ready=False that status.phase is not Ready, and on Stalled=True that a pod has not become ready
	// in ten minutes, or does not even run by then.
	ReasonNotReady = "NotReady"
	// ReasonNotServing means that pods run, but what serves is not, or not only, what the spec asks for. On Ready=False.
	ReasonNotServing = "NotServing"
	// ReasonServiceLeadsElsewhere means that the Service of the URL leads to others than the proxy's pods: its type is
	// ExternalName, or its selector has keys that Freehold does not set. On Stalled=True.
	ReasonServiceLeadsElsewhere = "ServiceLeadsElsewhere"
	// ReasonTerminating means that the MCPServer is being deleted, and that finalizers of others keep it. On Ready=False, Reconciling=True
	// and Stalled=False.
	ReasonTerminating = "Terminating"
	// ReasonNotApplied means that a write of the current generation has had no answer yet. On Ready=False.
	ReasonNotApplied = "NotApplied"
	// ReasonReconciled means that nothing is under way. On Reconciling=False.
	ReasonReconciled = "Reconciled"
	// ReasonRollingOut means that objects and pods do not match the spec yet. On Reconciling=True and RolledOut=False.
	ReasonRollingOut = "RollingOut"
	// ReasonCreating means that the MCPServer is being created, and has not served yet. On RolledOut=False.
	ReasonCreating = "Creating"
	// ReasonRolledOut means that all pods are those that the spec asks for, and some are ready. On RolledOut=True.
	ReasonRolledOut = "RolledOut"
	// ReasonNotStalled means that nothing blocks progress. On Stalled=False.
	ReasonNotStalled = "NotStalled"
)

// Reasons of conditions about a rollout that waits until a user or a controller lets it continue.
const (
	// ReasonPaused means that a Deployment is paused, or that freehold.dev/backend-rollout pauses a rollout. On
	// Reconciling=True.
	ReasonPaused = "Paused"
	// ReasonPartition means that the partition of a StatefulSet keeps pods at their revision. On Reconciling=True.
	ReasonPartition = "Partition"
	// ReasonOnDelete means that a StatefulSet has the update strategy OnDelete and that the user replaces its pods. On
	// Reconciling=True.
	ReasonOnDelete = "OnDelete"
	// ReasonDisruptionBudget means that a PodDisruptionBudget does not allow the eviction of the next pod. On
	// Reconciling=True.
	ReasonDisruptionBudget = "DisruptionBudget"
	// ReasonScaledToZero means that the proxy or the backend is to have no pods, so that the MCPServer is stopped. On RolledOut=False.
	ReasonScaledToZero = "ScaledToZero"
)

// Reasons of the condition Stalled about a stuck rollout. The kubelet, the scheduler and the Deployment controller define
// them, except PodsMissing. If the Deployment controller has another reason for its condition Progressing or ReplicaFailure, Stalled has
// that reason.
const (
	// ReasonUnschedulable means that a pod fits on no node. On Stalled=True.
	ReasonUnschedulable = "Unschedulable"
	// ReasonCrashLoopBackOff means that a container exits, or cannot be started, again and again. On Stalled=True.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonImagePullBackOff means that an image cannot be pulled. On Stalled=True.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonErrImageNeverPull means that an image is not on the node and may not be pulled. On Stalled=True.
	ReasonErrImageNeverPull = "ErrImageNeverPull"
	// ReasonInvalidImageName means that the name of an image cannot be parsed. On Stalled=True.
	ReasonInvalidImageName = "InvalidImageName"
	// ReasonCreateContainerConfigError means that a container refers to a Secret or ConfigMap that does not exist. On
	// Stalled=True.
	ReasonCreateContainerConfigError = "CreateContainerConfigError"
	// ReasonCreateContainerError means that the node cannot create a container. On Stalled=True.
	ReasonCreateContainerError = "CreateContainerError"
	// ReasonFailedCreate means that the API server refuses a pod, as for a ResourceQuota, a Pod Security level, an admission webhook or a
	// ServiceAccount that is missing. On Stalled=True.
	ReasonFailedCreate = "FailedCreate"
	// ReasonPodsMissing means that the controller of a StatefulSet has created no pod for ten minutes, though one is missing, and that no
	// event says why: an earlier pod does not go, for example. On Stalled=True.
	ReasonPodsMissing = "PodsMissing"
	// ReasonProgressDeadlineExceeded means that a Deployment makes no progress, and that nothing more is known of its pods.
	// On Stalled=True.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// Reasons of the conditions that answer a request to take or to yield fields.
const (
	// ReasonTaken means that Freehold has taken the fields. On FieldsTaken=True.
	ReasonTaken = "Taken"
	// ReasonTaking means that Freehold has not taken all of the fields yet. On FieldsTaken=Unknown.
	ReasonTaking = "Taking"
	// ReasonNothingToTake means that the request matches no contested field. On FieldsTaken=False.
	ReasonNothingToTake = "NothingToTake"
	// ReasonClaimedAgain means that a field manager claimed contested fields again before Freehold could take them. On
	// FieldsTaken=False.
	ReasonClaimedAgain = "ClaimedAgain"
	// ReasonYielded means that Freehold leaves the fields to other managers. On FieldsYielded=True.
	ReasonYielded = "Yielded"
	// ReasonNotYieldable means that the request has entries that match no field which Freehold sets and can yield. On
	// FieldsYielded=False.
	ReasonNotYieldable = "NotYieldable"
	// ReasonMalformed means that the request has entries that are neither fields nor field managers. On FieldsTaken=False
	// and FieldsYielded=False.
	ReasonMalformed = "Malformed"
	// ReasonTooManyEntries means that the request has more entries than Freehold reads. On FieldsTaken=False and
	// FieldsYielded=False.
	ReasonTooManyEntries = "TooManyEntries"
)

// Reasons of the condition TakenOver.
const (
	// ReasonTakenOver means that Freehold owns every object that ToolHive had created. On TakenOver=True.
	ReasonTakenOver = "TakenOver"
	// ReasonTakingOver means that the takeover is under way. On TakenOver=False.
	ReasonTakingOver = "TakingOver"
	// ReasonWaiting means that the MCPServer waits until other takeovers are done. On TakenOver=False.
	ReasonWaiting = "Waiting"
	// ReasonNeedsApproval means that the operator runs with --takeover=manual and the MCPServer has no annotation
	// freehold.dev/takeover. On TakenOver=False.
	ReasonNeedsApproval = "NeedsApproval"
	// ReasonCannotTakeOver means that Freehold cannot render the MCPServer, or cannot record that the takeover begins. On
	// TakenOver=False.
	ReasonCannotTakeOver = "CannotTakeOver"
	// ReasonTakeoverOff means that the operator runs with --takeover=off and leaves the MCPServer to ToolHive after all. On
	// TakenOver=False.
	ReasonTakeoverOff = "TakeoverOff"
)

// Reasons of events that no condition reports. Other events have the reason and the message of their condition.
const (
	// EventReasonFieldsTaken is a Normal event: Freehold took fields from another field manager, as freehold.dev/take asks.
	EventReasonFieldsTaken = "FieldsTaken"
	// EventReasonFieldsReleased is a Normal event: Freehold gave up fields, which keep their values.
	EventReasonFieldsReleased = "FieldsReleased"
	// EventReasonOwnershipLost is a Warning event: Freehold restored its ownership of fields after managedFields were
	// reset, or the object was restored from a copy.
	EventReasonOwnershipLost = "OwnershipLost"
	// EventReasonManagedFieldsRepaired is a Warning event: Freehold repaired an entry of managedFields that was unreadable
	// or duplicate, or had a version that the CRD no longer has.
	EventReasonManagedFieldsRepaired = "ManagedFieldsRepaired"
	// EventReasonSourceReplaced is a Warning event: Freehold replaced a source on a child that the child cannot have.
	EventReasonSourceReplaced = "SourceReplaced"
	// EventReasonReplacingPod is a Normal event: Freehold evicts a backend pod that has an earlier template.
	EventReasonReplacingPod = "ReplacingPod"
	// EventReasonChildrenLeftBehind is a Warning event: children without an owner reference outlive their MCPServer.
	EventReasonChildrenLeftBehind = "ChildrenLeftBehind"
	// EventReasonDeletionHeld is a Warning event: the API server refuses a write that has to precede the end of an
	// MCPServer that is being deleted.
	EventReasonDeletionHeld = "DeletionHeld"
)
