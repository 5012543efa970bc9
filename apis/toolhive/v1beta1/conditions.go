// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// Condition types of an MCPServer that ToolHive defines.
const (
	// ConditionReady is True while all that the spec asks for is written and serves.
	ConditionReady = "Ready"
	// ConditionGroupRefValidated tells whether spec.groupRef resolves.
	ConditionGroupRefValidated = "GroupRefValidated"
	// ConditionPodTemplateValid tells whether spec.podTemplateSpec can be used.
	ConditionPodTemplateValid = "PodTemplateValid"
	// ConditionOIDCConfigRefValidated tells whether spec.oidcConfigRef can be honoured.
	ConditionOIDCConfigRefValidated = "OIDCConfigRefValidated"
	// ConditionAuthzConfigRefValidated tells whether spec.authzConfigRef can be honoured.
	ConditionAuthzConfigRefValidated = "AuthzConfigRefValidated"
	// ConditionExternalAuthConfigValidated tells whether spec.externalAuthConfigRef can be honoured.
	ConditionExternalAuthConfigValidated = "ExternalAuthConfigValidated"
	// ConditionAuthServerRefValidated tells whether spec.authServerRef can be honoured.
	ConditionAuthServerRefValidated = "AuthServerRefValidated"
	// ConditionTelemetryConfigRefValidated tells whether spec.telemetryConfigRef can be honoured.
	ConditionTelemetryConfigRefValidated = "TelemetryConfigRefValidated"
	// ConditionWebhookConfigValidated tells whether spec.webhookConfigRef can be honoured.
	ConditionWebhookConfigValidated = "WebhookConfigValidated"
	// ConditionStdioReplicaCapped is True while a replica count above 1 is held at 1 because of stdio.
	ConditionStdioReplicaCapped = "StdioReplicaCapped"
	// ConditionSessionStorageWarning is True when several proxy pods have no shared session store.
	ConditionSessionStorageWarning = "SessionStorageWarning"
	// ConditionRateLimitConfigValid tells whether spec.rateLimiting can be honoured.
	ConditionRateLimitConfigValid = "RateLimitConfigValid"
	// ConditionAuthzPrimaryUpstreamProviderIgnored is True when the deprecated field of that name is set.
	ConditionAuthzPrimaryUpstreamProviderIgnored = "AuthzPrimaryUpstreamProviderIgnored"
)

// Condition types of an MCPServer that Freehold adds.
const (
	// ConditionFieldsOwned is False while another field manager holds a field that Freehold wants to set.
	ConditionFieldsOwned = "FieldsOwned"
	// ConditionReconciling is True while what the spec asks for comes about by itself, as the library kstatus reads it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while it does not, and somebody has to do something.
	ConditionStalled = "Stalled"
	// ConditionRolledOut is True while all pods are those that the spec asks for and some are ready. Its message has the
	// image that the backend last served with.
	ConditionRolledOut = "RolledOut"
	// ConditionFieldsTaken tells what became of the request to take contested fields from their owners. It is there
	// while the MCPServer has such a request.
	ConditionFieldsTaken = "FieldsTaken"
	// ConditionFieldsYielded tells which fields are left to others. It is there while the MCPServer asks for it.
	ConditionFieldsYielded = "FieldsYielded"
	// ConditionTakenOver tells how far Freehold has come with taking over an MCPServer that ToolHive has made. It is
	// there for such MCPServers alone.
	ConditionTakenOver = "TakenOver"
	// ConditionSpecValid is False while the spec holds something that cannot work.
	ConditionSpecValid = "SpecValid"
	// ConditionApplied is False while a write is refused, or has no answer, for another reason than a conflict.
	ConditionApplied = "Applied"
	// ConditionAuthzConfigValidated tells whether spec.authzConfig can be honoured.
	ConditionAuthzConfigValidated = "AuthzConfigValidated"
	// ConditionToolConfigRefValidated tells whether spec.toolConfigRef can be honoured.
	ConditionToolConfigRefValidated = "ToolConfigRefValidated"
)

// FreeholdConditions are the condition types that Freehold adds, and that ToolHive does not know.
func FreeholdConditions() []string {
	return []string{
		ConditionFieldsOwned,
		ConditionFieldsTaken,
		ConditionFieldsYielded,
		ConditionReconciling,
		ConditionStalled,
		ConditionRolledOut,
		ConditionTakenOver,
		ConditionSpecValid,
		ConditionApplied,
		ConditionAuthzConfigValidated,
		ConditionToolConfigRefValidated,
	}
}

// OwnedConditions are the condition types that Freehold's status writer claims, sorted. Conditions of any
// other type on an MCPServer belong to others and are never touched.
func OwnedConditions() []string {
	return slices.Sorted(slices.Values(append(FreeholdConditions(),
		ConditionReady,
		ConditionGroupRefValidated,
		ConditionPodTemplateValid,
		ConditionOIDCConfigRefValidated,
		ConditionAuthzConfigRefValidated,
		ConditionExternalAuthConfigValidated,
		ConditionAuthServerRefValidated,
		ConditionTelemetryConfigRefValidated,
		ConditionWebhookConfigValidated,
		ConditionStdioReplicaCapped,
		ConditionSessionStorageWarning,
		ConditionRateLimitConfigValid,
		ConditionAuthzPrimaryUpstreamProviderIgnored,
	)))
}
