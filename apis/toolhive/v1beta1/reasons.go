// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Each of these names its value, and its comment ends with the conditions that have it, as Type=Status. Stalled=True
// repeats the reason of what it is about: an invalid spec, a refused write or a rollout that is stuck. Ready=False repeats the
// reason of a refused write, and Reconciling=True that of one which is delayed.

// Reasons of conditions about a spec that Freehold cannot render.
const (
	// ReasonUnknownField is a field that the CRD in the cluster has and this version of Freehold does not. On
	// SpecValid=False.
	ReasonUnknownField = "UnknownField"
	// ReasonMalformedSpec is a value of another type than this version of Freehold expects. On SpecValid=False.
	ReasonMalformedSpec = "MalformedSpec"
	// ReasonInvalidName is a name from which the names of Services, labels or pods cannot be made. On SpecValid=False.
	ReasonInvalidName = "InvalidName"
	// ReasonInvalidImage is an image that is missing or cannot be passed to the proxyrunner. On SpecValid=False.
	ReasonInvalidImage = "InvalidImage"
	// ReasonInvalidTransport is a transport or proxyMode that ToolHive does not know. On SpecValid=False.
	ReasonInvalidTransport = "InvalidTransport"
	// ReasonInvalidPort is a port outside 1 to 65535. On SpecValid=False.
	ReasonInvalidPort = "InvalidPort"
	// ReasonInvalidReplicas is a negative number of replicas. On SpecValid=False.
	ReasonInvalidReplicas = "InvalidReplicas"
	// ReasonInvalidSessionAffinity is a session affinity that Kubernetes does not know. On SpecValid=False.
	ReasonInvalidSessionAffinity = "InvalidSessionAffinity"
	// ReasonInvalidQuantity is a resource quantity that cannot be used. On SpecValid=False.
	ReasonInvalidQuantity = "InvalidQuantity"
	// ReasonInvalidEnv is the name or the value of an environment variable that cannot be used. On SpecValid=False.
	ReasonInvalidEnv = "InvalidEnv"
	// ReasonInvalidSecretRef is a reference to a Secret that cannot exist. On SpecValid=False.
	ReasonInvalidSecretRef = "InvalidSecretRef"
	// ReasonInvalidVolume is a volume that cannot be mounted. On SpecValid=False.
	ReasonInvalidVolume = "InvalidVolume"
	// ReasonInvalidServiceAccount is the name of a ServiceAccount that cannot exist. On SpecValid=False.
	ReasonInvalidServiceAccount = "InvalidServiceAccount"
	// ReasonInvalidMetadata is a label or annotation that Kubernetes does not accept. On SpecValid=False.
	ReasonInvalidMetadata = "InvalidMetadata"
	// ReasonInvalidLimit is a limit of the proxy that cannot be used. On SpecValid=False.
	ReasonInvalidLimit = "InvalidLimit"
	// ReasonInvalidSessionStorage is a session store without the settings it needs. On SpecValid=False.
	ReasonInvalidSessionStorage = "InvalidSessionStorage"
	// ReasonInvalidAnnotation is an annotation of Freehold's with a value that it cannot have. On SpecValid=False.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonInvalidCharacter is a character that an apply cannot carry. On SpecValid=False.
	ReasonInvalidCharacter = "InvalidCharacter"
	// ReasonInvalidPodTemplateSpec is a podTemplateSpec that is no pod template, or that no API server would accept. On
	// PodTemplateValid=False.
	ReasonInvalidPodTemplateSpec = "InvalidPodTemplateSpec"
	// ReasonInvalidRateLimit is a rate limit that cannot be enforced. On RateLimitConfigValid=False.
	ReasonInvalidRateLimit = "InvalidRateLimit"
	// ReasonPerUserRequiresAuth is a limit per user where users are not told apart. On RateLimitConfigValid=False.
	ReasonPerUserRequiresAuth = "PerUserRequiresAuth"
	// ReasonAuthzConfigMapNotFound is a ConfigMap, or a key of it, that does not exist. On AuthzConfigValidated=False.
	ReasonAuthzConfigMapNotFound = "AuthzConfigMapNotFound"
	// ReasonInvalidAuthzConfig is an authorization configuration that cannot be used. On AuthzConfigValidated=False.
	ReasonInvalidAuthzConfig = "InvalidAuthzConfig"
)

// Reasons of conditions about a spec that works, but not as it was written.
const (
	// ReasonDuplicatesMerged is one name that was given different values, of which one was taken. On SpecValid=True.
	ReasonDuplicatesMerged = "DuplicatesMerged"
	// ReasonFieldsIgnored are fields of podTemplateSpec or authzConfig that have no effect. On SpecValid=True.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonRunnerTooOld is a field that the proxyrunner in use ignores. On SpecValid=False, and nothing is written, where the
	// MCPServer would have less protection than it asks for; on SpecValid=True otherwise.
	ReasonRunnerTooOld = "RunnerTooOld"
	// ReasonRunnerVersionUnknown is a proxyrunner's image whose tag does not tell whether it honours a field that it may ignore.
	// On SpecValid=True.
	ReasonRunnerVersionUnknown = "RunnerVersionUnknown"
	// ReasonPermissionProfileUnsupported is a permission profile, which has no effect. On SpecValid=True.
	ReasonPermissionProfileUnsupported = "PermissionProfileUnsupported"
	// ReasonUnknownPermissionProfile was a built-in permission profile that ToolHive does not have. On SpecValid=False of earlier
	// releases.
	//
	// Deprecated: permission profiles have no effect, so nothing is wrong with one. It goes with the next release.
	ReasonUnknownPermissionProfile = "UnknownPermissionProfile"
	// ReasonPermissionProfileNotFound was a ConfigMap, or a key of it, that does not exist. On SpecValid=False of earlier releases.
	//
	// Deprecated: permission profiles have no effect, so they are not read. It goes with the next release.
	ReasonPermissionProfileNotFound = "PermissionProfileNotFound"
	// ReasonInvalidPermissionProfile was a permission profile that cannot be read. On SpecValid=False of earlier releases.
	//
	// Deprecated: permission profiles have no effect, so they are not read. It goes with the next release.
	ReasonInvalidPermissionProfile = "InvalidPermissionProfile"
	// ReasonRestartRequestIgnored is a restart request that is not an RFC 3339 time. On SpecValid=True.
	ReasonRestartRequestIgnored = "RestartRequestIgnored"
	// ReasonNotPaused is a request to pause a rollout that goes on, since Kubernetes drives it. On SpecValid=True.
	ReasonNotPaused = "NotPaused"
	// ReasonStdioTransportCapAt1 is a number of replicas above 1 that is held at 1. On StdioReplicaCapped=True.
	ReasonStdioTransportCapAt1 = "StdioTransportCapAt1"
	// ReasonSessionStorageMissingForReplicas is that several proxies do not share sessions. On SessionStorageWarning=True.
	ReasonSessionStorageMissingForReplicas = "SessionStorageMissingForReplicas"
	// ReasonSessionsNotKept is that the proxyrunner is being replaced by one that does not serve the sessions in Redis which
	// the one before has begun. On SessionStorageWarning=True.
	ReasonSessionsNotKept = "SessionsNotKept"
	// ReasonPrimaryUpstreamProviderIgnored is a deprecated field that has no effect. On
	// AuthzPrimaryUpstreamProviderIgnored=True.
	ReasonPrimaryUpstreamProviderIgnored = "PrimaryUpstreamProviderIgnored"
	// ReasonPrimaryUpstreamProviderDenies is an authorization configuration in a ConfigMap that judges requests by tokens
	// which no proxy has. On AuthzConfigValidated=True.
	ReasonPrimaryUpstreamProviderDenies = "PrimaryUpstreamProviderDenies"
)

// Reasons of conditions about a spec with which nothing is wrong.
const (
	// ReasonValid is a spec that can be used as it is. On SpecValid=True.
	ReasonValid = "Valid"
	// ReasonValidPodTemplateSpec is a podTemplateSpec that can be used. On PodTemplateValid=True.
	ReasonValidPodTemplateSpec = "ValidPodTemplateSpec"
	// ReasonAuthzConfigValid is an authzConfig that can be used. On AuthzConfigValidated=True.
	ReasonAuthzConfigValid = "AuthzConfigValid"
	// ReasonRateLimitConfigValid is a rateLimiting that can be enforced. On RateLimitConfigValid=True.
	ReasonRateLimitConfigValid = "RateLimitConfigValid"
	// ReasonRateLimitNotApplicable is that rateLimiting is not set. On RateLimitConfigValid=True.
	ReasonRateLimitNotApplicable = "RateLimitNotApplicable"
	// ReasonStdioReplicaCapNotActive is that no number of replicas is held at 1. On StdioReplicaCapped=False.
	ReasonStdioReplicaCapNotActive = "StdioReplicaCapNotActive"
	// ReasonSessionStorageConfigured is that the proxies keep their sessions in Redis. On SessionStorageWarning=False.
	ReasonSessionStorageConfigured = "SessionStorageConfigured"
	// ReasonSessionStorageWarningNotApplicable is that a single proxy needs no shared session store. On
	// SessionStorageWarning=False.
	ReasonSessionStorageWarningNotApplicable = "SessionStorageWarningNotApplicable"
)

// Reasons of conditions about writes.
const (
	// ReasonNoConflict is that Freehold owns every field that it sets. On FieldsOwned=True.
	ReasonNoConflict = "NoConflict"
	// ReasonFieldManagerConflict is a field that another field manager owns and that Freehold wants a different value. On
	// FieldsOwned=False, and on Stalled=True where another field manager holds the condition FieldsOwned as well.
	ReasonFieldManagerConflict = "FieldManagerConflict"
	// ReasonObjectNotOurs is an object of a child's name that exists and belongs to something else. On FieldsOwned=False.
	ReasonObjectNotOurs = "ObjectNotOurs"
	// ReasonApplied is that the API server has accepted every object. On Applied=True.
	ReasonApplied = "Applied"
	// ReasonInvalid is an object that the API server's validation refuses. On Applied=False.
	ReasonInvalid = "Invalid"
	// ReasonUnappliable is an object that no apply can carry, such as one with a list that has one key twice. On
	// Applied=False.
	ReasonUnappliable = "Unappliable"
	// ReasonForbidden is a write that authorization, a quota or an admission policy refuses. On Applied=False.
	ReasonForbidden = "Forbidden"
	// ReasonNewerSource is an object that was written from a newer generation of the MCPServer, or a newer state of an object
	// that it refers to, than the operator has seen. On Applied=False, when it does not pass by itself.
	ReasonNewerSource = "NewerSource"
	// ReasonObjectChanging is an object that changes faster than it can be written. On Applied=False, when it does not pass by
	// itself.
	ReasonObjectChanging = "ObjectChanging"
	// ReasonObjectTerminating is an object, or its namespace, that is being deleted. On Applied=False, when it does not pass
	// by itself.
	ReasonObjectTerminating = "ObjectTerminating"
	// ReasonRetrying is a write that the API server could not answer. On Applied=False, when it does not pass by itself.
	ReasonRetrying = "Retrying"
	// ReasonUnsettled is that not every write has had an answer yet. On FieldsOwned=Unknown and Applied=Unknown.
	ReasonUnsettled = "Unsettled"
)

// Reasons of conditions about progress.
const (
	// ReasonReady is that all that the spec asks for is written and serves. On Ready=True.
	ReasonReady = "Ready"
	// ReasonNotReady is that status.phase is not Ready, on Ready=False; or a pod that has been running for ten minutes without
	// becoming ready, on Stalled=True.
	ReasonNotReady = "NotReady"
	// ReasonNotServing is that status.phase is Ready and what serves is not, or not only, what the spec asks for. On
	// Ready=False.
	ReasonNotServing = "NotServing"
	// ReasonNotApplied is a write of the present generation that has had no answer yet. On Ready=False.
	ReasonNotApplied = "NotApplied"
	// ReasonReconciled is that nothing is under way. On Reconciling=False.
	ReasonReconciled = "Reconciled"
	// ReasonRollingOut is that objects and pods are being brought in line with the spec. On Reconciling=True and
	// RolledOut=False.
	ReasonRollingOut = "RollingOut"
	// ReasonRolledOut is that all pods are those that the spec asks for and some are ready. On RolledOut=True.
	ReasonRolledOut = "RolledOut"
	// ReasonNotStalled is that nothing is in the way. On Stalled=False.
	ReasonNotStalled = "NotStalled"
)

// Reasons of conditions about a rollout that goes on when somebody lets it.
const (
	// ReasonPaused is a Deployment that is paused, or a rollout that freehold.dev/backend-rollout pauses. On
	// Reconciling=True.
	ReasonPaused = "Paused"
	// ReasonPartition is a StatefulSet whose partition keeps pods at their revision. On Reconciling=True.
	ReasonPartition = "Partition"
	// ReasonOnDelete is a StatefulSet with the update strategy OnDelete whose pods the user replaces. On Reconciling=True.
	ReasonOnDelete = "OnDelete"
	// ReasonDisruptionBudget is a PodDisruptionBudget that does not allow the next pod to be replaced. On Reconciling=True.
	ReasonDisruptionBudget = "DisruptionBudget"
	// ReasonScaledToZero is a workload without replicas: of one tier on Reconciling=True, of an MCPServer that is stopped on
	// RolledOut=False.
	ReasonScaledToZero = "ScaledToZero"
)

// Reasons of the condition Stalled about a rollout that is stuck. They are words of the kubelet, of the scheduler and of
// the Deployment's controller; where that one has a further reason for its condition Progressing, Stalled has it as well.
const (
	// ReasonUnschedulable is a pod that fits on no node. On Stalled=True.
	ReasonUnschedulable = "Unschedulable"
	// ReasonCrashLoopBackOff is a container that ends, or cannot be started, again and again. On Stalled=True.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonImagePullBackOff is an image that cannot be pulled. On Stalled=True.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonErrImageNeverPull is an image that is not on the node and may not be pulled. On Stalled=True.
	ReasonErrImageNeverPull = "ErrImageNeverPull"
	// ReasonInvalidImageName is an image whose name cannot be parsed. On Stalled=True.
	ReasonInvalidImageName = "InvalidImageName"
	// ReasonCreateContainerConfigError is a container that refers to a Secret or ConfigMap that does not exist. On
	// Stalled=True.
	ReasonCreateContainerConfigError = "CreateContainerConfigError"
	// ReasonCreateContainerError is a container that the node cannot create. On Stalled=True.
	ReasonCreateContainerError = "CreateContainerError"
	// ReasonProgressDeadlineExceeded is a Deployment without progress, of whose pods nothing more is known. On
	// Stalled=True.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// Reasons of the conditions that answer a request to take or to yield fields.
const (
	// ReasonTaken is that Freehold has taken the fields. On FieldsTaken=True.
	ReasonTaken = "Taken"
	// ReasonTaking is that Freehold has not taken all of the fields yet. On FieldsTaken=Unknown.
	ReasonTaking = "Taking"
	// ReasonNothingToTake is a request that fits no contested field. On FieldsTaken=False.
	ReasonNothingToTake = "NothingToTake"
	// ReasonYielded is that Freehold leaves the fields to other managers. On FieldsYielded=True.
	ReasonYielded = "Yielded"
	// ReasonNotYieldable is a request with entries for which there is no field that Freehold sets and can leave to others. On
	// FieldsYielded=False.
	ReasonNotYieldable = "NotYieldable"
	// ReasonMalformed is a request with entries that are neither fields nor field managers. On FieldsTaken=False and
	// FieldsYielded=False.
	ReasonMalformed = "Malformed"
	// ReasonTooManyEntries is a request with more entries than Freehold reads. On FieldsTaken=False and FieldsYielded=False.
	ReasonTooManyEntries = "TooManyEntries"
)

// Reasons of the condition TakenOver.
const (
	// ReasonTakenOver is that every object that ToolHive had made is Freehold's. On TakenOver=True.
	ReasonTakenOver = "TakenOver"
	// ReasonTakingOver is a takeover that is under way. On TakenOver=False.
	ReasonTakingOver = "TakingOver"
	// ReasonWaiting is an MCPServer that waits until other takeovers are done. On TakenOver=False.
	ReasonWaiting = "Waiting"
	// ReasonNeedsApproval is an MCPServer without the annotation freehold.dev/takeover, where the operator runs with
	// --takeover=manual. On TakenOver=False.
	ReasonNeedsApproval = "NeedsApproval"
	// ReasonCannotTakeOver is an MCPServer that Freehold cannot render. On TakenOver=False.
	ReasonCannotTakeOver = "CannotTakeOver"
	// ReasonTakeoverOff is an MCPServer that is left to ToolHive after all, since the operator runs with --takeover=off. On
	// TakenOver=False.
	ReasonTakeoverOff = "TakeoverOff"
)

// Reasons of events about what no condition tells. Other events have the reason and the message of the condition that
// they announce.
const (
	// EventReasonFieldsTaken is a Normal event: Freehold took fields from another field manager, as freehold.dev/take asks.
	EventReasonFieldsTaken = "FieldsTaken"
	// EventReasonFieldsReleased is a Normal event: Freehold gave up fields, whose values stay.
	EventReasonFieldsReleased = "FieldsReleased"
	// EventReasonOwnershipLost is a Warning event: Freehold owns fields again after managedFields were reset, or the object was
	// restored from a copy.
	EventReasonOwnershipLost = "OwnershipLost"
	// EventReasonManagedFieldsRepaired is a Warning event: an entry of managedFields could not be read, or was there twice, and
	// was repaired.
	EventReasonManagedFieldsRepaired = "ManagedFieldsRepaired"
	// EventReasonSourceReplaced is a Warning event: a child named a source that it cannot have, which Freehold replaced.
	EventReasonSourceReplaced = "SourceReplaced"
	// EventReasonReplacingPod is a Normal event: Freehold evicts a backend pod that has an earlier template.
	EventReasonReplacingPod = "ReplacingPod"
	// EventReasonChildrenLeftBehind is a Warning event: children without an owner reference outlive their MCPServer.
	EventReasonChildrenLeftBehind = "ChildrenLeftBehind"
	// EventReasonDeletionHeld is a Warning event: the API server refuses what Freehold has to do before an MCPServer that is
	// being deleted can go.
	EventReasonDeletionHeld = "DeletionHeld"
)
