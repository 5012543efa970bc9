// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ReasonWaitingForTurn means that an object that the MCPServer refers to has changed, and that its proxy waits for its
// rollout: Freehold rolls out few at a time. On Applied=False and Reconciling=True.
const ReasonWaitingForTurn = "WaitingForTurn"

// Reasons of conditions of an MCPServer which report that the operator cannot list objects of a kind. So it does not know
// whether the object that the spec names exists.
const (
	// ReasonOIDCConfigRefError means that the operator cannot list MCPOIDCConfigs. On OIDCConfigRefValidated=False.
	ReasonOIDCConfigRefError = "OIDCConfigRefError"
	// ReasonAuthzConfigRefError means that the operator cannot list MCPAuthzConfigs. On AuthzConfigRefValidated=False.
	ReasonAuthzConfigRefError = "AuthzConfigRefError"
	// ReasonExternalAuthConfigError means that the operator cannot list MCPExternalAuthConfigs. On
	// ExternalAuthConfigValidated=False.
	ReasonExternalAuthConfigError = "ExternalAuthConfigError"
	// ReasonAuthServerRefFetchError means that the operator cannot list MCPExternalAuthConfigs. On
	// AuthServerRefValidated=False.
	ReasonAuthServerRefFetchError = "AuthServerRefFetchError"
	// ReasonToolConfigRefError means that the operator cannot list MCPToolConfigs. On ToolConfigRefValidated=False.
	ReasonToolConfigRefError = "ToolConfigRefError"
	// ReasonTelemetryConfigRefError means that the operator cannot list MCPTelemetryConfigs. On
	// TelemetryConfigRefValidated=False.
	ReasonTelemetryConfigRefError = "TelemetryConfigRefError"
	// ReasonWebhookConfigError means that the operator cannot list MCPWebhookConfigs. On WebhookConfigValidated=False.
	ReasonWebhookConfigError = "WebhookConfigError"
)
