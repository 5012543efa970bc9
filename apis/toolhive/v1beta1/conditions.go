// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// Condition types of an MCPServer that ToolHive defines.
const (
	// ConditionReady is True while every object that the spec asks for is written and serves, and nothing earlier does.
	ConditionReady = "Ready"
	// ConditionGroupRefValidated tells whether the MCPGroup of spec.groupRef exists and is ready.
	ConditionGroupRefValidated = "GroupRefValidated"
	// ConditionPodTemplateValid is there while spec.podTemplateSpec is set, and False while it cannot be used.
	ConditionPodTemplateValid = "PodTemplateValid"
	// ConditionOIDCConfigRefValidated tells whether the MCPOIDCConfig of spec.oidcConfigRef can be used.
	ConditionOIDCConfigRefValidated = "OIDCConfigRefValidated"
	// ConditionCABundleRefValidated is there while the MCPOIDCConfig of spec.oidcConfigRef names a CA bundle, and False while the
	// bundle cannot be used.
	ConditionCABundleRefValidated = "CABundleRefValidated"
	// ConditionAuthzConfigRefValidated tells whether the MCPAuthzConfig of spec.authzConfigRef can be used.
	ConditionAuthzConfigRefValidated = "AuthzConfigRefValidated"
	// ConditionExternalAuthConfigValidated tells whether the MCPExternalAuthConfig of spec.externalAuthConfigRef can be used.
	ConditionExternalAuthConfigValidated = "ExternalAuthConfigValidated"
	// ConditionAuthServerRefValidated tells whether the MCPExternalAuthConfig of spec.authServerRef can be used.
	ConditionAuthServerRefValidated = "AuthServerRefValidated"
	// ConditionTelemetryConfigRefValidated tells whether the MCPTelemetryConfig of spec.telemetryConfigRef can be used.
	ConditionTelemetryConfigRefValidated = "TelemetryConfigRefValidated"
	// ConditionWebhookConfigValidated tells whether the MCPWebhookConfig of spec.webhookConfigRef can be used.
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
	// ConditionFieldsOwned is False while another field manager holds a field that Freehold wants to set. On what MCPServers refer to
	// it is there only then, and not while ToolHive's operator writes the object as well, since Freehold does not write it then.
	ConditionFieldsOwned = "FieldsOwned"
	// ConditionReconciling is True while Freehold or Kubernetes works on what the spec asks for, or waits for somebody who holds it
	// up on purpose, as the library kstatus reads it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while something blocks the takeover of what the spec asks for that waiting does not cure, as the library
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
	// ConditionToolConfigRefValidated tells whether the MCPToolConfig of spec.toolConfigRef can be used.
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

// Condition types of the configurations that an MCPServer refers to. ToolHive defines them.
const (
	// ConditionValid on a configuration is True while its spec can be used.
	ConditionValid = "Valid"
	// ConditionDeletionBlocked on a configuration is True while its deletion waits for workloads that refer to it.
	ConditionDeletionBlocked = "DeletionBlocked"
	// ConditionIdentitySynthesized on an MCPExternalAuthConfig with an embedded authorization server is True while users of an
	// upstream have neither name nor address.
	ConditionIdentitySynthesized = "IdentitySynthesized"
	// ConditionDeprecatedInboundGrantConfiguration on an MCPExternalAuthConfig with an embedded authorization server is True
	// while it has fields that inboundGrants replaces.
	ConditionDeprecatedInboundGrantConfiguration = "DeprecatedInboundGrantConfiguration"
	// ConditionMCPServersChecked on an MCPGroup is True while its members are known.
	ConditionMCPServersChecked = "MCPServersChecked"
)

// ConfigConditions are the condition types that Freehold writes on a configuration that an MCPServer refers to, sorted.
func ConfigConditions() []string {
	return []string{
		ConditionDeletionBlocked,
		ConditionDeprecatedInboundGrantConfiguration,
		ConditionFieldsOwned,
		ConditionIdentitySynthesized,
		ConditionValid,
	}
}

// GroupConditions are the condition types that Freehold writes on an MCPGroup, sorted.
func GroupConditions() []string { return []string{ConditionFieldsOwned, ConditionMCPServersChecked} }

// OwnedConditions are the condition types that Freehold's status writer claims on an MCPServer, sorted. Conditions of any
// other type on an MCPServer belong to others and are never touched.
func OwnedConditions() []string {
	return slices.Sorted(slices.Values(append(FreeholdConditions(),
		ConditionReady,
		ConditionGroupRefValidated,
		ConditionPodTemplateValid,
		ConditionOIDCConfigRefValidated,
		ConditionCABundleRefValidated,
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
