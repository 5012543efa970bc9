// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// UnsupportedReferences returns a problem for each reference to a custom resource that Freehold cannot
// honour. Such references fail closed: to leave one out would run a proxy without the authentication, the
// authorization or the limits that its owner asked for.
func UnsupportedReferences(server *v1beta1.MCPServer) []Problem {
	spec := &server.Spec
	var problems []Problem
	refuse := func(field, kind, name, condition, reason string) {
		problems = append(problems, Problem{
			Condition: condition,
			Reason:    reason,
			Message: fmt.Sprintf("spec.%s names the %s %s, and Freehold does not support this reference yet. "+
				"The proxy of this MCPServer is not created or changed. Remove the reference, "+
				"or let the ToolHive operator handle this MCPServer.", field, kind, quote(name)),
		})
	}
	if ref := spec.OIDCConfigRef; ref != nil {
		refuse("oidcConfigRef", "MCPOIDCConfig", ref.Name,
			v1beta1.ConditionOIDCConfigRefValidated, v1beta1.ReasonOIDCConfigRefNotSupported)
	}
	if ref := spec.AuthzConfigRef; ref != nil {
		refuse("authzConfigRef", "MCPAuthzConfig", ref.Name,
			v1beta1.ConditionAuthzConfigRefValidated, v1beta1.ReasonAuthzConfigRefNotSupported)
	}
	if ref := spec.ExternalAuthConfigRef; ref != nil {
		refuse("externalAuthConfigRef", "MCPExternalAuthConfig", ref.Name,
			v1beta1.ConditionExternalAuthConfigValidated, v1beta1.ReasonExternalAuthConfigRefNotSupported)
	}
	if ref := spec.AuthServerRef; ref != nil {
		refuse("authServerRef", cmp.Or(ref.Kind, "MCPExternalAuthConfig"), ref.Name,
			v1beta1.ConditionAuthServerRefValidated, v1beta1.ReasonAuthServerRefNotSupported)
	}
	if ref := spec.WebhookConfigRef; ref != nil {
		refuse("webhookConfigRef", "MCPWebhookConfig", ref.Name,
			v1beta1.ConditionWebhookConfigValidated, v1beta1.ReasonWebhookConfigRefNotSupported)
	}
	if ref := spec.TelemetryConfigRef; ref != nil {
		refuse("telemetryConfigRef", "MCPTelemetryConfig", ref.Name,
			v1beta1.ConditionTelemetryConfigRefValidated, v1beta1.ReasonTelemetryConfigRefNotSupported)
	}
	if ref := spec.ToolConfigRef; ref != nil {
		refuse("toolConfigRef", "MCPToolConfig", ref.Name,
			v1beta1.ConditionToolConfigRefValidated, v1beta1.ReasonToolConfigRefNotSupported)
	}
	return problems
}

// noteGroup tells that the group was not looked at: membership has no part in what is rendered.
func (r *renderer) noteGroup() {
	if ref := r.server.Spec.GroupRef; ref != nil {
		r.notice(v1beta1.ConditionGroupRefValidated, v1beta1.ReasonGroupRefNotChecked,
			"spec.groupRef names the MCPGroup %s; Freehold does not check that it exists and is ready.",
			quote(ref.Name))
	}
}
