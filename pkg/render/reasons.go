// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

// Reasons of condition SpecValid that keep an MCPServer from being rendered.
const (
	// ReasonUnknownField is a field that the CRD in the cluster has and this version of Freehold does not.
	ReasonUnknownField = "UnknownField"
	// ReasonMalformedSpec is a value of another type than this version of Freehold expects.
	ReasonMalformedSpec = "MalformedSpec"
	// ReasonInvalidName is a name from which the names of Services, labels or pods cannot be made.
	ReasonInvalidName = "InvalidName"
	// ReasonInvalidImage is an image that is missing or cannot be passed to the proxyrunner.
	ReasonInvalidImage = "InvalidImage"
	// ReasonInvalidTransport is a transport or proxyMode that ToolHive does not know.
	ReasonInvalidTransport = "InvalidTransport"
	// ReasonInvalidPort is a port outside 1 to 65535.
	ReasonInvalidPort = "InvalidPort"
	// ReasonInvalidReplicas is a negative number of replicas.
	ReasonInvalidReplicas = "InvalidReplicas"
	// ReasonInvalidSessionAffinity is a session affinity that Kubernetes does not know.
	ReasonInvalidSessionAffinity = "InvalidSessionAffinity"
	// ReasonInvalidQuantity is a resource quantity that cannot be used.
	ReasonInvalidQuantity = "InvalidQuantity"
	// ReasonInvalidEnv is the name or the value of an environment variable that cannot be used.
	ReasonInvalidEnv = "InvalidEnv"
	// ReasonInvalidSecretRef is a reference to a Secret that cannot exist.
	ReasonInvalidSecretRef = "InvalidSecretRef"
	// ReasonInvalidVolume is a volume that cannot be mounted.
	ReasonInvalidVolume = "InvalidVolume"
	// ReasonInvalidServiceAccount is the name of a ServiceAccount that cannot exist.
	ReasonInvalidServiceAccount = "InvalidServiceAccount"
	// ReasonInvalidMetadata is a label or annotation that Kubernetes does not accept.
	ReasonInvalidMetadata = "InvalidMetadata"
	// ReasonInvalidSessionStorage is a session store without the settings it needs.
	ReasonInvalidSessionStorage = "InvalidSessionStorage"
	// ReasonInvalidAnnotation is an annotation of Freehold's with a value that it cannot have.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonNotPaused tells of a rollout that was to be paused and goes on, since Kubernetes drives it.
	ReasonNotPaused = "NotPaused"
	// ReasonInvalidCharacter is a character that an apply cannot carry.
	ReasonInvalidCharacter = "InvalidCharacter"
	// ReasonUnknownPermissionProfile is a built-in permission profile that ToolHive does not have.
	ReasonUnknownPermissionProfile = "UnknownPermissionProfile"
	// ReasonPermissionProfileNotFound is a ConfigMap, or a key of it, that does not exist.
	ReasonPermissionProfileNotFound = "PermissionProfileNotFound"
	// ReasonInvalidPermissionProfile is a permission profile that cannot be read.
	ReasonInvalidPermissionProfile = "InvalidPermissionProfile"
)

// Reasons of condition SpecValid that do not keep an MCPServer from being rendered.
const (
	// ReasonDuplicatesMerged is one name that was given different values, of which one was taken.
	ReasonDuplicatesMerged = "DuplicatesMerged"
	// ReasonFieldsIgnored are fields of podTemplateSpec or authzConfig that have no effect.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonRestartRequestIgnored is a restart request that is not an RFC 3339 time.
	ReasonRestartRequestIgnored = "RestartRequestIgnored"
)

// Reasons of other conditions.
const (
	// ReasonInvalidPodTemplateSpec is a podTemplateSpec that is no pod template, or that no API server would
	// accept. Condition PodTemplateValid.
	ReasonInvalidPodTemplateSpec = "InvalidPodTemplateSpec"
	// ReasonInvalidRateLimit is a rate limit that cannot be enforced. Condition RateLimitConfigValid.
	ReasonInvalidRateLimit = "InvalidRateLimit"
	// ReasonPerUserRequiresAuth is a limit per user where users are not told apart. Condition
	// RateLimitConfigValid.
	ReasonPerUserRequiresAuth = "PerUserRequiresAuth"
	// ReasonAuthzConfigMapNotFound is a ConfigMap, or a key of it, that does not exist. Condition
	// AuthzConfigValidated.
	ReasonAuthzConfigMapNotFound = "AuthzConfigMapNotFound"
	// ReasonInvalidAuthzConfig is an authorization configuration that cannot be used. Condition
	// AuthzConfigValidated.
	ReasonInvalidAuthzConfig = "InvalidAuthzConfig"
	// ReasonStdioTransportCapAt1 tells that a number of replicas above 1 is rendered as 1. Condition
	// StdioReplicaCapped, True.
	ReasonStdioTransportCapAt1 = "StdioTransportCapAt1"
	// ReasonSessionStorageMissingForReplicas tells that several proxies do not share sessions. Condition
	// SessionStorageWarning, True.
	ReasonSessionStorageMissingForReplicas = "SessionStorageMissingForReplicas"
	// ReasonPrimaryUpstreamProviderIgnored tells that a deprecated field has no effect. Condition
	// AuthzPrimaryUpstreamProviderIgnored, True.
	ReasonPrimaryUpstreamProviderIgnored = "PrimaryUpstreamProviderIgnored"
	// ReasonPrimaryUpstreamProviderDenies tells of an authorization configuration in a ConfigMap that judges requests by
	// tokens which no proxy has. Condition AuthzConfigValidated, True.
	ReasonPrimaryUpstreamProviderDenies = "PrimaryUpstreamProviderDenies"
	// ReasonGroupRefNotChecked tells that nobody looked whether the group exists. Condition
	// GroupRefValidated, Unknown.
	ReasonGroupRefNotChecked = "GroupRefNotChecked"
)

// Reasons of references to other custom resources, each of the condition of its reference.
const (
	// ReasonOIDCConfigRefNotSupported is a use of spec.oidcConfigRef.
	ReasonOIDCConfigRefNotSupported = "OIDCConfigRefNotSupported"
	// ReasonAuthzConfigRefNotSupported is a use of spec.authzConfigRef.
	ReasonAuthzConfigRefNotSupported = "AuthzConfigRefNotSupported"
	// ReasonExternalAuthConfigRefNotSupported is a use of spec.externalAuthConfigRef.
	ReasonExternalAuthConfigRefNotSupported = "ExternalAuthConfigRefNotSupported"
	// ReasonAuthServerRefNotSupported is a use of spec.authServerRef.
	ReasonAuthServerRefNotSupported = "AuthServerRefNotSupported"
	// ReasonWebhookConfigRefNotSupported is a use of spec.webhookConfigRef.
	ReasonWebhookConfigRefNotSupported = "WebhookConfigRefNotSupported"
	// ReasonTelemetryConfigRefNotSupported is a use of spec.telemetryConfigRef.
	ReasonTelemetryConfigRefNotSupported = "TelemetryConfigRefNotSupported"
	// ReasonToolConfigRefNotSupported is a use of spec.toolConfigRef.
	ReasonToolConfigRefNotSupported = "ToolConfigRefNotSupported"
)
