// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// Condition types of an MCPServer that ToolHive defines.
const (
	// ConditionReady is True while every object that the spec asks for is written and serves, and nothing earlier does.
	ConditionReady = "Ready"
	// ConditionGroupRefValidated is Unknown while spec.groupRef is set: Freehold does not check that the group exists.
	ConditionGroupRefValidated = "GroupRefValidated"
	// ConditionPodTemplateValid is there while spec.podTemplateSpec is set, and False while it cannot be used.
	ConditionPodTemplateValid = "PodTemplateValid"
	// ConditionOIDCConfigRefValidated is False while spec.oidcConfigRef is set: Freehold does not support it yet.
	ConditionOIDCConfigRefValidated = "OIDCConfigRefValidated"
	// ConditionAuthzConfigRefValidated is False while spec.authzConfigRef is set: Freehold does not support it yet.
	ConditionAuthzConfigRefValidated = "AuthzConfigRefValidated"
	// ConditionExternalAuthConfigValidated is False while spec.externalAuthConfigRef is set: Freehold does not support it yet.
	ConditionExternalAuthConfigValidated = "ExternalAuthConfigValidated"
	// ConditionAuthServerRefValidated is False while spec.authServerRef is set: Freehold does not support it yet.
	ConditionAuthServerRefValidated = "AuthServerRefValidated"
	// ConditionTelemetryConfigRefValidated is False while spec.telemetryConfigRef is set: Freehold does not support it yet.
	ConditionTelemetryConfigRefValidated = "TelemetryConfigRefValidated"
	// ConditionWebhookConfigValidated is False while spec.webhookConfigRef is set: Freehold does not support it yet.
	ConditionWebhookConfigValidated = "WebhookConfigValidated"
	// ConditionStdioReplicaCapped is True while a number of replicas above 1 is held at 1 because of stdio.
	ConditionStdioReplicaCapped = "StdioReplicaCapped"
	// ConditionSessionStorageWarning is True while several proxy pods have no shared session store, and while a proxyrunner
	// takes over that does not serve the sessions in the store.
	ConditionSessionStorageWarning = "SessionStorageWarning"
	// ConditionRateLimitConfigValid is False while spec.rateLimiting cannot be enforced.
	ConditionRateLimitConfigValid = "RateLimitConfigValid"
	// ConditionAuthzPrimaryUpstreamProviderIgnored is True while the deprecated field of that name is set.
	ConditionAuthzPrimaryUpstreamProviderIgnored = "AuthzPrimaryUpstreamProviderIgnored"
)

// Condition types of an MCPServer that Freehold adds.
const (
	// ConditionFieldsOwned is False while another field manager holds a field that Freehold wants to set.
	ConditionFieldsOwned = "FieldsOwned"
	// ConditionReconciling is True while Freehold or Kubernetes works on what the spec asks for, or waits for somebody who holds it
	// up on purpose, as the library kstatus reads it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while something is in the way of what the spec asks for that waiting does not cure, as the library
	// kstatus reads it.
	ConditionStalled = "Stalled"
	// ConditionRolledOut is True while all pods are those that the spec asks for and some are ready. Its message has the
	// image that the backend last served with.
	ConditionRolledOut = "RolledOut"
	// ConditionFieldsTaken answers freehold.dev/take: True when Freehold has taken the fields, Unknown while it does, and False when
	// the request is not followed. It is there while the MCPServer has such a request.
	ConditionFieldsTaken = "FieldsTaken"
	// ConditionFieldsYielded answers freehold.dev/yield: True while Freehold leaves the fields to other managers, and False when a
	// part of the request is not followed. It is there while the MCPServer has such a request.
	ConditionFieldsYielded = "FieldsYielded"
	// ConditionTakenOver is True when Freehold has taken over every object of an MCPServer that ToolHive has made, and False until
	// then. It is there for such MCPServers alone.
	ConditionTakenOver = "TakenOver"
	// ConditionSpecValid is False while the spec holds something that Freehold cannot render.
	ConditionSpecValid = "SpecValid"
	// ConditionApplied is False while a write is refused, or has no answer, for another reason than a conflict.
	ConditionApplied = "Applied"
	// ConditionAuthzConfigValidated is there while spec.authzConfig is set, and False while it cannot be used.
	ConditionAuthzConfigValidated = "AuthzConfigValidated"
	// ConditionToolConfigRefValidated is False while spec.toolConfigRef is set: Freehold does not support it yet.
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
