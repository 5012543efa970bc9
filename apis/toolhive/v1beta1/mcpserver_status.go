// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServerPhase is a summary of an MCPServer in one word.
type MCPServerPhase string

const (
	// PhasePending means that the MCPServer is not serving yet.
	PhasePending MCPServerPhase = "Pending"
	// PhaseReady means that what the spec asks for is written and serves, and nothing earlier does.
	PhaseReady MCPServerPhase = "Ready"
	// PhaseFailed means that the MCPServer cannot serve until a user changes something.
	PhaseFailed MCPServerPhase = "Failed"
	// PhaseTerminating means that the MCPServer is being deleted. Freehold writes it where the finalizer of another owner keeps the
	// MCPServer, which the message names; otherwise an MCPServer that is being deleted keeps its last phase.
	PhaseTerminating MCPServerPhase = "Terminating"
	// PhaseStopped means that the proxy or the backend is scaled to zero.
	PhaseStopped MCPServerPhase = "Stopped"
)

// MCPServerStatus is what the operator observed.
type MCPServerStatus struct {
	// conditions, each of one type. Other writers may add conditions of their own types.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status is about; -1 while no operator has looked at the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is a summary in one word.
	// +kubebuilder:validation:Enum=Pending;Ready;Failed;Terminating;Stopped
	// +optional
	Phase MCPServerPhase `json:"phase,omitempty"`
	// message explains the phase.
	// +optional
	Message string `json:"message,omitempty"`
	// url is where clients inside the cluster reach the MCPServer. It is empty while the Service of the proxy does not exist, is being
	// deleted, or belongs to another owner.
	// +optional
	URL string `json:"url,omitempty"`
	// readyReplicas is the number of proxy pods that are serving.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// toolConfigHash is the hash of the MCPToolConfig in use.
	// +optional
	ToolConfigHash string `json:"toolConfigHash,omitempty"`
	// externalAuthConfigHash is the hash of the MCPExternalAuthConfig in use.
	// +optional
	ExternalAuthConfigHash string `json:"externalAuthConfigHash,omitempty"`
	// authServerConfigHash is the hash of the authorization server's configuration in use.
	// +optional
	AuthServerConfigHash string `json:"authServerConfigHash,omitempty"`
	// authzConfigHash is the hash of the MCPAuthzConfig in use.
	// +optional
	AuthzConfigHash string `json:"authzConfigHash,omitempty"`
	// oidcConfigHash is the hash of the MCPOIDCConfig in use.
	// +optional
	OIDCConfigHash string `json:"oidcConfigHash,omitempty"`
	// telemetryConfigHash is the hash of the MCPTelemetryConfig in use.
	// +optional
	TelemetryConfigHash string `json:"telemetryConfigHash,omitempty"`
	// webhookConfigHash is the hash of the MCPWebhookConfig in use.
	// +optional
	WebhookConfigHash string `json:"webhookConfigHash,omitempty"`
}
