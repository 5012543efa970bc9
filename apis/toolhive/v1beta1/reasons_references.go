// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ReasonWaitingForTurn is a change of something that an MCPServer refers to, for which its proxy is not replaced yet: few are at a time. On
// Applied=False and Reconciling=True.
const ReasonWaitingForTurn = "WaitingForTurn"

// Reasons of conditions of an MCPServer that tell that the operator cannot list objects of a kind, so that it is not known whether the one that the spec
// names exists.
const (
	// ReasonOIDCConfigRefError is about MCPOIDCConfigs. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefError = "OIDCConfigRefError"
	// ReasonAuthzConfigRefError is about MCPAuthzConfigs. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefError = "AuthzConfigRefError"
	// ReasonExternalAuthConfigError is about MCPExternalAuthConfigs. On ExternalAuthConfigValidated=False.
	ReasonExternalAuthConfigError = "ExternalAuthConfigError"
	// ReasonAuthServerRefFetchError is about MCPExternalAuthConfigs. On AuthServerRefValidated=False.
	ReasonAuthServerRefFetchError = "AuthServerRefFetchError"
	// ReasonToolConfigRefError is about MCPToolConfigs. On ToolConfigRefValidated=False.
	ReasonToolConfigRefError = "ToolConfigRefError"
	// ReasonTelemetryConfigRefError is about MCPTelemetryConfigs. On TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefError = "TelemetryConfigRefError"
	// ReasonWebhookConfigError is about MCPWebhookConfigs. On WebhookConfigValidated=False.
	ReasonWebhookConfigError = "WebhookConfigError"
)
