// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// sameCaller says what a policy judges where no tokens are checked.
const sameCaller = "without spec.oidcConfigRef its policies see every caller as the same local user"

// inlineAuthz returns the inline authorization policy; nil when there is none.
func (r *renderer) inlineAuthz() *v1beta1.InlineAuthzConfig {
	if authz := r.server.Spec.AuthzConfig; authz != nil && authz.Type == v1beta1.AuthzConfigTypeInline {
		return authz.Inline
	}
	return nil
}

// authz returns the authorization configuration of the RunConfig; nil when there is none. One that is asked for and
// cannot be had is a problem: a proxy without it would let everybody in.
func (r *renderer) authz() *runconfig.Authz {
	wanted := r.server.Spec.AuthzConfig
	if wanted == nil {
		return nil
	}
	mapping := runconfig.ClaimMapping{
		GroupClaimName: wanted.GroupClaimName, RoleClaimName: wanted.RoleClaimName, GroupEntityType: wanted.GroupEntityType,
	}
	var authz *runconfig.Authz
	switch wanted.Type {
	case v1beta1.AuthzConfigTypeInline:
		authz = r.authzFromSpec(wanted.Inline, mapping)
	case v1beta1.AuthzConfigTypeConfigMap, "":
		authz = r.authzFromConfigMap(wanted.ConfigMap, mapping)
	default:
		r.invalidAuthz("spec.authzConfig.type is %s; it must be configMap or inline.", quote(wanted.Type))
	}
	if authz != nil && r.server.Spec.OIDCConfigRef == nil {
		r.notice(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonAuthzConfigValid, "authzConfig is valid. Mind that %s", sameCaller)
	}
	return authz
}

func (r *renderer) authzFromSpec(inline *v1beta1.InlineAuthzConfig, mapping runconfig.ClaimMapping) *runconfig.Authz {
	if inline == nil {
		r.invalidAuthz("spec.authzConfig.type is inline, but spec.authzConfig.inline is missing.")
		return nil
	}
	if provider := inline.PrimaryUpstreamProvider; provider != "" {
		r.notice(v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored, v1beta1.ReasonPrimaryUpstreamProviderIgnored,
			"spec.authzConfig.inline.primaryUpstreamProvider %s has no effect on an MCPServer.", quote(provider))
	}
	authz, err := runconfig.CedarAuthz(&runconfig.Cedar{
		Policies:     inline.Policies,
		EntitiesJSON: cmp.Or(inline.EntitiesJSON, runconfig.NoEntities),
		ClaimMapping: mapping,
	})
	if err != nil {
		r.invalidAuthz("spec.authzConfig.inline cannot be used: %s.", oneLine(err))
		return nil
	}
	return authz
}

func (r *renderer) authzFromConfigMap(ref *v1beta1.ConfigMapAuthzRef, mapping runconfig.ClaimMapping) *runconfig.Authz {
	if ref == nil || ref.Name == "" {
		r.invalidAuthz("spec.authzConfig.type is configMap, but spec.authzConfig.configMap.name is missing.")
		return nil
	}
	configMap, key := r.in.AuthzConfigMap, cmp.Or(ref.Key, runconfig.AuthzKey)
	if configMap == nil {
		r.holdFor(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonAuthzConfigMapNotFound,
			"The ConfigMap %s of spec.authzConfig does not exist.", quote(ref.Name))
		return nil
	}
	text, ok := configMap.Data[key]
	if problem := bounds.Problem(configMap); problem != "" {
		r.holdFor(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonInvalidAuthzConfig,
			"The ConfigMap %s of spec.authzConfig is too large: %s. Make it smaller.", quote(ref.Name), problem)
		return nil
	}
	if !ok {
		r.holdFor(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonAuthzConfigMapNotFound,
			"The ConfigMap %s of spec.authzConfig has no key %s.", quote(ref.Name), quote(key))
		return nil
	}
	authz, err := runconfig.ParseAuthz(text, mapping)
	if err != nil {
		r.holdFor(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonInvalidAuthzConfig,
			"The key %s of ConfigMap %s is not an authorization configuration: %s.",
			quote(key), quote(ref.Name), runconfig.WithoutContent(err))
		return nil
	}
	r.uses(configMap)
	if authz.PrimaryUpstreamProvider != "" && !r.hasUpstream() {
		// The proxyrunner looks for a token of that provider, finds none, and denies. Without the key it would judge by
		// the claims of the request's token, which is more than the author of the policy asked for.
		r.notice(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonPrimaryUpstreamProviderDenies,
			"The key %s of ConfigMap %s sets primary_upstream_provider. No proxy of an MCPServer without an "+
				"embedded authorization server has a token of such a provider: the proxy denies every request. "+
				"Remove primary_upstream_provider to judge requests by their own token.",
			quote(key), quote(ref.Name))
	}
	if authz.Type != runconfig.AuthzTypeCedar && mapping != (runconfig.ClaimMapping{}) {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonFieldsIgnored,
			"spec.authzConfig.groupClaimName, roleClaimName and groupEntityType have no effect: the authorization "+
				"configuration in ConfigMap %s is not of type %s.", quote(ref.Name), runconfig.AuthzTypeCedar)
	}
	return authz
}

func (r *renderer) invalidAuthz(format string, args ...any) {
	r.invalid(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonInvalidAuthzConfig, format, args...)
}
