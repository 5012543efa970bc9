// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of conditions of an MCPServer about what it refers to.
const (
	// ReasonOIDCConfigRefValid is an MCPOIDCConfig that can be used. On OIDCConfigRefValidated=True.
	ReasonOIDCConfigRefValid = "OIDCConfigRefValid"
	// ReasonOIDCConfigRefNotFound is an MCPOIDCConfig that does not exist. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefNotFound = "OIDCConfigRefNotFound"
	// ReasonOIDCConfigRefNotValid is an MCPOIDCConfig that cannot be used. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefNotValid = "OIDCConfigRefNotValid"
	// ReasonCABundleRefValid is a ConfigMap that has the CA bundle. On CABundleRefValidated=True.
	ReasonCABundleRefValid = "CABundleRefValid"
	// ReasonCABundleRefNotFound is a ConfigMap that does not exist. On CABundleRefValidated=False.
	ReasonCABundleRefNotFound = "CABundleRefNotFound"
	// ReasonCABundleRefInvalid is a ConfigMap without the key, or with a name from which no volume can be named. On
	// CABundleRefValidated=False.
	ReasonCABundleRefInvalid = "CABundleRefInvalid"
	// ReasonAuthzConfigRefValid is an MCPAuthzConfig that can be used. On AuthzConfigRefValidated=True.
	ReasonAuthzConfigRefValid = "AuthzConfigRefValid"
	// ReasonAuthzConfigRefNotFound is an MCPAuthzConfig that does not exist. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefNotFound = "AuthzConfigRefNotFound"
	// ReasonAuthzConfigRefNotValid is an MCPAuthzConfig that cannot be used. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefNotValid = "AuthzConfigRefNotValid"
	// ReasonExternalAuthConfigValid is an MCPExternalAuthConfig that can be used. On ExternalAuthConfigValidated=True.
	ReasonExternalAuthConfigValid = "ExternalAuthConfigValid"
	// ReasonExternalAuthConfigNotFound is an MCPExternalAuthConfig that does not exist. On
	// ExternalAuthConfigValidated=False.
	ReasonExternalAuthConfigNotFound = "ExternalAuthConfigNotFound"
	// ReasonInvalidExternalAuthConfig is an MCPExternalAuthConfig that cannot be used. On
	// ExternalAuthConfigValidated=False.
	ReasonInvalidExternalAuthConfig = "InvalidExternalAuthConfig"
	// ReasonExternalAuthTypeNotSupported is an MCPExternalAuthConfig of a type that no MCPServer can use, such as
	// bearerToken. On ExternalAuthConfigValidated=False.
	ReasonExternalAuthTypeNotSupported = "ExternalAuthTypeNotSupported"
	// ReasonInvalidConfig is an authorization server that does not fit the MCPServer, such as one without
	// spec.oidcConfigRef. On ExternalAuthConfigValidated=False.
	ReasonInvalidConfig = "InvalidConfig"
	// ReasonMultiUpstreamNotSupported is an authorization server with more than one upstream. On
	// ExternalAuthConfigValidated=False and AuthServerRefValidated=False.
	ReasonMultiUpstreamNotSupported = "MultiUpstreamNotSupported"
	// ReasonInvalidCABundle is a CA bundle of an authorization server that does not exist or has no certificates. On
	// ExternalAuthConfigValidated=False and AuthServerRefValidated=False.
	ReasonInvalidCABundle = "InvalidCABundle"
	// ReasonAuthServerRefValid is an authorization server that can be used. On AuthServerRefValidated=True.
	ReasonAuthServerRefValid = "AuthServerRefValid"
	// ReasonAuthServerRefNotFound is an MCPExternalAuthConfig that does not exist. On AuthServerRefValidated=False.
	ReasonAuthServerRefNotFound = "AuthServerRefNotFound"
	// ReasonAuthServerRefInvalidKind is a kind that has no authorization server. On AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidKind = "AuthServerRefInvalidKind"
	// ReasonAuthServerRefInvalidType is an MCPExternalAuthConfig without an authorization server. On
	// AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidType = "AuthServerRefInvalidType"
	// ReasonAuthServerRefInvalidConfig is an authorization server that cannot be used, or that does not fit the
	// MCPServer. On AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidConfig = "AuthServerRefInvalidConfig"
	// ReasonTelemetryConfigRefValid is an MCPTelemetryConfig that can be used. On TelemetryConfigRefValidated=True.
	ReasonTelemetryConfigRefValid = "TelemetryConfigRefValid"
	// ReasonTelemetryConfigRefNotFound is an MCPTelemetryConfig that does not exist. On
	// TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefNotFound = "TelemetryConfigRefNotFound"
	// ReasonTelemetryConfigRefInvalid is an MCPTelemetryConfig that cannot be used. On TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefInvalid = "TelemetryConfigRefInvalid"
	// ReasonToolConfigRefValid is an MCPToolConfig that can be used. On ToolConfigRefValidated=True.
	ReasonToolConfigRefValid = "ToolConfigRefValid"
	// ReasonToolConfigRefNotFound is an MCPToolConfig that does not exist. On ToolConfigRefValidated=False.
	ReasonToolConfigRefNotFound = "ToolConfigRefNotFound"
	// ReasonToolConfigRefInvalid is an MCPToolConfig that cannot be used. On ToolConfigRefValidated=False.
	ReasonToolConfigRefInvalid = "ToolConfigRefInvalid"
	// ReasonWebhookConfigValid is an MCPWebhookConfig that can be used. On WebhookConfigValidated=True.
	ReasonWebhookConfigValid = "WebhookConfigValid"
	// ReasonWebhookConfigNotFound is an MCPWebhookConfig that does not exist. On WebhookConfigValidated=False.
	ReasonWebhookConfigNotFound = "WebhookConfigNotFound"
	// ReasonWebhookConfigInvalid is an MCPWebhookConfig that cannot be used. On WebhookConfigValidated=False.
	ReasonWebhookConfigInvalid = "WebhookConfigInvalid"
	// ReasonGroupRefIsValid is an MCPGroup that is ready. On GroupRefValidated=True.
	ReasonGroupRefIsValid = "GroupRefIsValid"
	// ReasonGroupRefNotFound is an MCPGroup that does not exist or is being deleted. On GroupRefValidated=False.
	ReasonGroupRefNotFound = "GroupRefNotFound"
	// ReasonGroupRefNotReady is an MCPGroup whose phase is not Ready. On GroupRefValidated=False.
	ReasonGroupRefNotReady = "GroupRefNotReady"
)

// Reasons of conditions of what an MCPServer refers to.
const (
	// ReasonConfigValid is a spec that can be used, of an MCPOIDCConfig or MCPAuthzConfig. On Valid=True.
	ReasonConfigValid = "ConfigValid"
	// ReasonConfigInvalid is a spec that cannot be used, of an MCPOIDCConfig or MCPAuthzConfig. On Valid=False.
	ReasonConfigInvalid = "ConfigInvalid"
	// ReasonValidationSucceeded is a spec that can be used, of any other configuration. On Valid=True.
	ReasonValidationSucceeded = "ValidationSucceeded"
	// ReasonValidationFailed is a spec that cannot be used, of any other configuration. On Valid=False.
	ReasonValidationFailed = "ValidationFailed"
	// ReasonEnterpriseRequired is an MCPExternalAuthConfig of type obo, which only ToolHive's enterprise build supports.
	// On Valid=False, and on ExternalAuthConfigValidated=False of the MCPServer.
	ReasonEnterpriseRequired = "EnterpriseRequired"
	// ReasonReferencedByWorkloads is a deletion that waits until no workload refers to the configuration. On
	// DeletionBlocked=True.
	ReasonReferencedByWorkloads = "ReferencedByWorkloads"
	// ReasonOAuth2UpstreamWithoutUserInfo is an upstream with neither userInfo nor identityFromToken. On
	// IdentitySynthesized=True.
	ReasonOAuth2UpstreamWithoutUserInfo = "OAuth2UpstreamWithoutUserInfo"
	// ReasonAllUpstreamsHaveUserInfo is that the identity of every user is known. On IdentitySynthesized=False.
	ReasonAllUpstreamsHaveUserInfo = "AllUpstreamsHaveUserInfo"
	// ReasonLegacyInboundGrantFields is that fields are set which inboundGrants replaces. On
	// DeprecatedInboundGrantConfiguration=True.
	ReasonLegacyInboundGrantFields = "LegacyInboundGrantFields"
	// ReasonCanonicalInboundGrantConfiguration is that none of these fields is set. On
	// DeprecatedInboundGrantConfiguration=False.
	ReasonCanonicalInboundGrantConfiguration = "CanonicalInboundGrantConfiguration"
	// ReasonListMCPServersCheckSucceeded is that the members of an MCPGroup are known. On MCPServersChecked=True.
	ReasonListMCPServersCheckSucceeded = "ListMCPServersCheckSucceeded"
	// ReasonListMCPServersCheckFailed is that the members of an MCPGroup cannot be listed. On MCPServersChecked=False.
	ReasonListMCPServersCheckFailed = "ListMCPServersCheckFailed"
)

// Reasons of events about what an MCPServer refers to.
const (
	// EventReasonConfigInvalid is a Warning event: a configuration that could be used before cannot be used any more, or
	// never could.
	EventReasonConfigInvalid = "ConfigInvalid"
	// EventReasonConfigValid is a Normal event: a configuration that could not be used can be used now.
	EventReasonConfigValid = "ConfigValid"
	// EventReasonDeletionBlocked is a Warning event: the deletion of a configuration waits for workloads that refer to
	// it.
	EventReasonDeletionBlocked = "DeletionBlocked"
	// EventReasonInboundGrantsLegacyFieldsDeprecated is a Warning event: an MCPExternalAuthConfig has fields that
	// inboundGrants replaces.
	EventReasonInboundGrantsLegacyFieldsDeprecated = "InboundGrantsLegacyFieldsDeprecated"
)
