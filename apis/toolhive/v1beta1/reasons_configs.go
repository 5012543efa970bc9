// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of conditions of an MCPServer about the objects that it refers to.
const (
	// ReasonOIDCConfigRefValid means that the MCPOIDCConfig can be used. On OIDCConfigRefValidated=True.
	ReasonOIDCConfigRefValid = "OIDCConfigRefValid"
	// ReasonOIDCConfigRefNotFound means that the MCPOIDCConfig does not exist. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefNotFound = "OIDCConfigRefNotFound"
	// ReasonOIDCConfigRefNotValid means that the MCPOIDCConfig cannot be used. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefNotValid = "OIDCConfigRefNotValid"
	// ReasonCABundleRefValid means that the ConfigMap has the CA bundle. On CABundleRefValidated=True.
	ReasonCABundleRefValid = "CABundleRefValid"
	// ReasonCABundleRefNotFound means that the ConfigMap does not exist. On CABundleRefValidated=False.
	ReasonCABundleRefNotFound = "CABundleRefNotFound"
	// ReasonCABundleRefInvalid means that the ConfigMap lacks the key, or that no valid volume name can be derived from its
	// name. On CABundleRefValidated=False.
	ReasonCABundleRefInvalid = "CABundleRefInvalid"
	// ReasonAuthzConfigRefValid means that the MCPAuthzConfig can be used. On AuthzConfigRefValidated=True.
	ReasonAuthzConfigRefValid = "AuthzConfigRefValid"
	// ReasonAuthzConfigRefNotFound means that the MCPAuthzConfig does not exist. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefNotFound = "AuthzConfigRefNotFound"
	// ReasonAuthzConfigRefNotValid means that the MCPAuthzConfig cannot be used. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefNotValid = "AuthzConfigRefNotValid"
	// ReasonExternalAuthConfigValid means that the MCPExternalAuthConfig can be used. On ExternalAuthConfigValidated=True.
	ReasonExternalAuthConfigValid = "ExternalAuthConfigValid"
	// ReasonExternalAuthConfigNotFound means that the MCPExternalAuthConfig does not exist. On
	// ExternalAuthConfigValidated=False.
	ReasonExternalAuthConfigNotFound = "ExternalAuthConfigNotFound"
	// ReasonInvalidExternalAuthConfig means that the MCPExternalAuthConfig cannot be used. On
	// ExternalAuthConfigValidated=False.
	ReasonInvalidExternalAuthConfig = "InvalidExternalAuthConfig"
	// ReasonExternalAuthTypeNotSupported means that the MCPExternalAuthConfig has a type that no MCPServer can use, such as
	// bearerToken. On ExternalAuthConfigValidated=False.
	ReasonExternalAuthTypeNotSupported = "ExternalAuthTypeNotSupported"
	// ReasonInvalidConfig means that the authorization server does not fit the MCPServer, for example because
	// spec.oidcConfigRef is not set. On ExternalAuthConfigValidated=False.
	ReasonInvalidConfig = "InvalidConfig"
	// ReasonMultiUpstreamNotSupported means that the authorization server has more than one upstream. On
	// ExternalAuthConfigValidated=False and AuthServerRefValidated=False.
	ReasonMultiUpstreamNotSupported = "MultiUpstreamNotSupported"
	// ReasonInvalidCABundle means that a CA bundle of the authorization server does not exist or has no certificates. On
	// ExternalAuthConfigValidated=False and AuthServerRefValidated=False.
	ReasonInvalidCABundle = "InvalidCABundle"
	// ReasonAuthServerRefValid means that the authorization server can be used. On AuthServerRefValidated=True.
	ReasonAuthServerRefValid = "AuthServerRefValid"
	// ReasonAuthServerRefNotFound means that the MCPExternalAuthConfig does not exist. On AuthServerRefValidated=False.
	ReasonAuthServerRefNotFound = "AuthServerRefNotFound"
	// ReasonAuthServerRefInvalidKind means that the reference names a kind that has no authorization server. On
	// AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidKind = "AuthServerRefInvalidKind"
	// ReasonAuthServerRefInvalidType means that the MCPExternalAuthConfig has no authorization server. On
	// AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidType = "AuthServerRefInvalidType"
	// ReasonAuthServerRefInvalidConfig means that the authorization server cannot be used, or does not fit the MCPServer.
	// On AuthServerRefValidated=False.
	ReasonAuthServerRefInvalidConfig = "AuthServerRefInvalidConfig"
	// ReasonTelemetryConfigRefValid means that the MCPTelemetryConfig can be used. On TelemetryConfigRefValidated=True.
	ReasonTelemetryConfigRefValid = "TelemetryConfigRefValid"
	// ReasonTelemetryConfigRefNotFound means that the MCPTelemetryConfig does not exist. On
	// TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefNotFound = "TelemetryConfigRefNotFound"
	// ReasonTelemetryConfigRefInvalid means that the MCPTelemetryConfig cannot be used. On
	// TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefInvalid = "TelemetryConfigRefInvalid"
	// ReasonToolConfigRefValid means that the MCPToolConfig can be used. On ToolConfigRefValidated=True.
	ReasonToolConfigRefValid = "ToolConfigRefValid"
	// ReasonToolConfigRefNotFound means that the MCPToolConfig does not exist. On ToolConfigRefValidated=False.
	ReasonToolConfigRefNotFound = "ToolConfigRefNotFound"
	// ReasonToolConfigRefInvalid means that the MCPToolConfig cannot be used. On ToolConfigRefValidated=False.
	ReasonToolConfigRefInvalid = "ToolConfigRefInvalid"
	// ReasonWebhookConfigValid means that the MCPWebhookConfig can be used. On WebhookConfigValidated=True.
	ReasonWebhookConfigValid = "WebhookConfigValid"
	// ReasonWebhookConfigNotFound means that the MCPWebhookConfig does not exist. On WebhookConfigValidated=False.
	ReasonWebhookConfigNotFound = "WebhookConfigNotFound"
	// ReasonWebhookConfigInvalid means that the MCPWebhookConfig cannot be used. On WebhookConfigValidated=False.
	ReasonWebhookConfigInvalid = "WebhookConfigInvalid"
	// ReasonGroupRefIsValid means that the MCPGroup is ready. On GroupRefValidated=True.
	ReasonGroupRefIsValid = "GroupRefIsValid"
	// ReasonGroupRefNotFound means that the MCPGroup does not exist or is being deleted. On GroupRefValidated=False.
	ReasonGroupRefNotFound = "GroupRefNotFound"
	// ReasonGroupRefNotReady means that the phase of the MCPGroup is not Ready. On GroupRefValidated=False.
	ReasonGroupRefNotReady = "GroupRefNotReady"
)

// Reasons of conditions of the objects that an MCPServer refers to.
const (
	// ReasonConfigValid means that the spec of an MCPOIDCConfig or MCPAuthzConfig can be used. On Valid=True.
	ReasonConfigValid = "ConfigValid"
	// ReasonConfigInvalid means that the spec of an MCPOIDCConfig or MCPAuthzConfig cannot be used. On Valid=False.
	ReasonConfigInvalid = "ConfigInvalid"
	// ReasonValidationSucceeded means that the spec of any other configuration can be used. On Valid=True.
	ReasonValidationSucceeded = "ValidationSucceeded"
	// ReasonValidationFailed means that the spec of any other configuration cannot be used. On Valid=False.
	ReasonValidationFailed = "ValidationFailed"
	// ReasonEnterpriseRequired means that the MCPExternalAuthConfig has the type obo, which only ToolHive's enterprise
	// build supports. On Valid=False, and on ExternalAuthConfigValidated=False of the MCPServer.
	ReasonEnterpriseRequired = "EnterpriseRequired"
	// ReasonReferencedByWorkloads means that the deletion waits until no workload refers to the configuration. On
	// DeletionBlocked=True.
	ReasonReferencedByWorkloads = "ReferencedByWorkloads"
	// ReasonOAuth2UpstreamWithoutUserInfo means that an upstream has neither userInfo nor identityFromToken. On
	// IdentitySynthesized=True.
	ReasonOAuth2UpstreamWithoutUserInfo = "OAuth2UpstreamWithoutUserInfo"
	// ReasonAllUpstreamsHaveUserInfo means that the identity of every user is known. On IdentitySynthesized=False.
	ReasonAllUpstreamsHaveUserInfo = "AllUpstreamsHaveUserInfo"
	// ReasonLegacyInboundGrantFields means that fields are set which inboundGrants replaces. On
	// DeprecatedInboundGrantConfiguration=True.
	ReasonLegacyInboundGrantFields = "LegacyInboundGrantFields"
	// ReasonCanonicalInboundGrantConfiguration means that none of these fields is set. On
	// DeprecatedInboundGrantConfiguration=False.
	ReasonCanonicalInboundGrantConfiguration = "CanonicalInboundGrantConfiguration"
	// ReasonListMCPServersCheckSucceeded means that the members of an MCPGroup are known. On MCPServersChecked=True.
	ReasonListMCPServersCheckSucceeded = "ListMCPServersCheckSucceeded"
	// ReasonListMCPServersCheckFailed means that the members of an MCPGroup cannot be listed. On MCPServersChecked=False.
	ReasonListMCPServersCheckFailed = "ListMCPServersCheckFailed"
)

// Reasons of events about the objects that an MCPServer refers to.
const (
	// EventReasonConfigInvalid is a Warning event: a configuration can no longer be used, or never could.
	EventReasonConfigInvalid = "ConfigInvalid"
	// EventReasonConfigValid is a Normal event: a configuration that could not be used can be used now.
	EventReasonConfigValid = "ConfigValid"
	// EventReasonDeletionBlocked is a Warning event: the deletion of a configuration waits for workloads that refer to it.
	EventReasonDeletionBlocked = "DeletionBlocked"
	// EventReasonInboundGrantsLegacyFieldsDeprecated is a Warning event: an MCPExternalAuthConfig has fields that
	// inboundGrants replaces.
	EventReasonInboundGrantsLegacyFieldsDeprecated = "InboundGrantsLegacyFieldsDeprecated"
)
