// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// Condition types of an MCPServer that ToolHive defines.
const (
	// ConditionReady is True while everything that the spec asks for is written and serves, and nothing earlier serves.
	ConditionReady = "Ready"
	// ConditionGroupRefValidated reports whether the MCPGroup of spec.groupRef exists and is ready.
	ConditionGroupRefValidated = "GroupRefValidated"
	// ConditionPodTemplateValid exists while spec.podTemplateSpec is set, and is False while that cannot be used.
	ConditionPodTemplateValid = "PodTemplateValid"
	// ConditionOIDCConfigRefValidated reports whether the MCPOIDCConfig of spec.oidcConfigRef can be used.
	ConditionOIDCConfigRefValidated = "OIDCConfigRefValidated"
	// ConditionCABundleRefValidated exists while the MCPOIDCConfig of spec.oidcConfigRef names a CA bundle, and is False
	// while the bundle cannot be used.
	ConditionCABundleRefValidated = "CABundleRefValidated"
	// ConditionAuthzConfigRefValidated reports whether the MCPAuthzConfig of spec.authzConfigRef can be used.
	ConditionAuthzConfigRefValidated = "AuthzConfigRefValidated"
	// ConditionExternalAuthConfigValidated reports whether the MCPExternalAuthConfig of spec.externalAuthConfigRef can be
	// used.
	ConditionExternalAuthConfigValidated = "ExternalAuthConfigValidated"
	// ConditionAuthServerRefValidated reports whether the MCPExternalAuthConfig of spec.authServerRef can be used.
	ConditionAuthServerRefValidated = "AuthServerRefValidated"
	// ConditionTelemetryConfigRefValidated reports whether the MCPTelemetryConfig of spec.telemetryConfigRef can be used.
	ConditionTelemetryConfigRefValidated = "TelemetryConfigRefValidated"
	// ConditionWebhookConfigValidated reports whether the MCPWebhookConfig of spec.webhookConfigRef can be used.
	ConditionWebhookConfigValidated = "WebhookConfigValidated"
	// ConditionStdioReplicaCapped is True while Freehold keeps a number of replicas above 1 at 1 because of the transport
	// stdio.
	ConditionStdioReplicaCapped = "StdioReplicaCapped"
	// ConditionSessionStorageWarning is True while several proxy pods have no shared session store, or do not share what
	// their authorization server keeps, and while a new proxyrunner does not serve the sessions in the store.
	ConditionSessionStorageWarning = "SessionStorageWarning"
	// ConditionRateLimitConfigValid is False while spec.rateLimiting cannot be enforced.
	ConditionRateLimitConfigValid = "RateLimitConfigValid"
	// ConditionAuthzPrimaryUpstreamProviderIgnored is True while the deprecated field of that name is set.
	ConditionAuthzPrimaryUpstreamProviderIgnored = "AuthzPrimaryUpstreamProviderIgnored"
)

// Condition types of an MCPServer that Freehold adds.
const (
	// ConditionFieldsOwned is False while another field manager owns a field that Freehold wants to set. On the objects
	// that MCPServers refer to it exists only then, and not while ToolHive's operator writes the object as well: Freehold
	// does not write it then.
	ConditionFieldsOwned = "FieldsOwned"
	// ConditionReconciling is True while Freehold or Kubernetes works on what the spec asks for, or waits on purpose, for
	// example for a paused rollout. It follows the library kstatus.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a problem that waiting does not solve blocks what the spec asks for. It follows the
	// library kstatus. On the configurations that MCPServers refer to it exists only while the spec is invalid.
	ConditionStalled = "Stalled"
	// ConditionRolledOut is True while all pods are those that the spec asks for and some are ready. Its message has the
	// image that the backend last served with.
	ConditionRolledOut = "RolledOut"
	// ConditionFieldsTaken answers freehold.dev/take: True when Freehold has taken the fields, Unknown while it takes them,
	// and False when it does not follow the request. It exists while the MCPServer has such a request.
	ConditionFieldsTaken = "FieldsTaken"
	// ConditionFieldsYielded answers freehold.dev/yield: True while Freehold leaves the fields to other managers, and False
	// when it does not follow a part of the request. It exists while the MCPServer has such a request.
	ConditionFieldsYielded = "FieldsYielded"
	// ConditionTakenOver is True when Freehold has taken over every object of an MCPServer that ToolHive created, and False
	// until then. It exists only on such MCPServers.
	ConditionTakenOver = "TakenOver"
	// ConditionSpecValid is False while the spec has a value that Freehold cannot render.
	ConditionSpecValid = "SpecValid"
	// ConditionApplied is False while a write is refused, or has no answer, for another reason than a conflict.
	ConditionApplied = "Applied"
	// ConditionForeignPods is True while pods that are not the MCPServer's get a share of its requests, as they have the labels by which its
	// Services select its own. There is none otherwise.
	ConditionForeignPods = "ForeignPods"
	// ConditionAuthzConfigValidated exists while spec.authzConfig is set, and is False while that cannot be used.
	ConditionAuthzConfigValidated = "AuthzConfigValidated"
	// ConditionToolConfigRefValidated reports whether the MCPToolConfig of spec.toolConfigRef can be used.
	ConditionToolConfigRefValidated = "ToolConfigRefValidated"
)

// FreeholdConditions returns the condition types that Freehold adds and ToolHive does not know.
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
		ConditionForeignPods,
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
	// ConditionIdentitySynthesized on an MCPExternalAuthConfig with an embedded authorization server is True while users of
	// an upstream have neither a name nor an address.
	ConditionIdentitySynthesized = "IdentitySynthesized"
	// ConditionDeprecatedInboundGrantConfiguration on an MCPExternalAuthConfig with an embedded authorization server is True
	// while it has fields that inboundGrants replaces.
	ConditionDeprecatedInboundGrantConfiguration = "DeprecatedInboundGrantConfiguration"
	// ConditionMCPServersChecked on an MCPGroup is True while its members are known.
	ConditionMCPServersChecked = "MCPServersChecked"
)

// ConfigConditions returns the condition types that Freehold writes on a configuration that an MCPServer refers to, sorted.
func ConfigConditions() []string {
	return []string{
		ConditionDeletionBlocked,
		ConditionDeprecatedInboundGrantConfiguration,
		ConditionFieldsOwned,
		ConditionIdentitySynthesized,
		ConditionStalled,
		ConditionValid,
	}
}

// GroupConditions returns the condition types that Freehold writes on an MCPGroup, sorted.
func GroupConditions() []string { return []string{ConditionFieldsOwned, ConditionMCPServersChecked} }

// OwnedConditions returns the condition types that Freehold's status writer claims on an MCPServer, sorted. Freehold never
// changes conditions of any other type.
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
