// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"

// Kinds that an MCPServer can refer to, under shorter names.
const (
	OIDC         = v1beta1.MCPOIDCConfigKind
	AuthzConfig  = v1beta1.MCPAuthzConfigKind
	ExternalAuth = v1beta1.MCPExternalAuthConfigKind
	Tool         = v1beta1.MCPToolConfigKind
	Telemetry    = v1beta1.MCPTelemetryConfigKind
	Webhook      = v1beta1.MCPWebhookConfigKind
	Group        = v1beta1.MCPGroupKind
)

// Named is an object in the namespace of the one that refers to it.
type Named struct{ Kind, Name string }

// References returns a spec that refers to the same objects, and has nothing else.
func References(spec *v1beta1.MCPServerSpec) v1beta1.MCPServerSpec {
	return v1beta1.MCPServerSpec{
		OIDCConfigRef: spec.OIDCConfigRef, AuthzConfigRef: spec.AuthzConfigRef, ToolConfigRef: spec.ToolConfigRef,
		ExternalAuthConfigRef: spec.ExternalAuthConfigRef, AuthServerRef: spec.AuthServerRef, WebhookConfigRef: spec.WebhookConfigRef,
		TelemetryConfigRef: spec.TelemetryConfigRef, GroupRef: spec.GroupRef,
	}
}

// Of returns the objects that an MCPServer refers to, in the order of the fields of its spec; the same object may be there twice.
func Of(spec *v1beta1.MCPServerSpec) (all []Named) {
	add := func(kind, name string) { all = append(all, Named{kind, name}) }
	if ref := spec.OIDCConfigRef; ref != nil {
		add(OIDC, ref.Name)
	}
	if ref := spec.AuthzConfigRef; ref != nil {
		add(AuthzConfig, ref.Name)
	}
	if ref := spec.ToolConfigRef; ref != nil {
		add(Tool, ref.Name)
	}
	if ref := spec.ExternalAuthConfigRef; ref != nil {
		add(ExternalAuth, ref.Name)
	}
	if ref := spec.AuthServerRef; ref != nil && (ref.Kind == "" || ref.Kind == ExternalAuth) {
		add(ExternalAuth, ref.Name)
	}
	if ref := spec.WebhookConfigRef; ref != nil {
		add(Webhook, ref.Name)
	}
	if ref := spec.TelemetryConfigRef; ref != nil {
		add(Telemetry, ref.Name)
	}
	if ref := spec.GroupRef; ref != nil {
		add(Group, ref.Name)
	}
	return all
}
