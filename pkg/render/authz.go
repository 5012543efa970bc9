// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// inlineAuthz is the inline authorization policy; nil when there is none.
func (r *renderer) inlineAuthz() *v1beta1.InlineAuthzConfig {
	if authz := r.server.Spec.AuthzConfig; authz != nil && authz.Type == v1beta1.AuthzConfigTypeInline {
		return authz.Inline
	}
	return nil
}

// authz is the authorization configuration of the RunConfig; nil when there is none. One that is asked for
// and cannot be had is a problem: a proxy without it would let everybody in.
func (r *renderer) authz() *runconfig.Authz {
	wanted := r.server.Spec.AuthzConfig
	if wanted == nil {
		return nil
	}
	var authz *runconfig.Authz
	switch wanted.Type {
	case v1beta1.AuthzConfigTypeInline:
		authz = r.authzFromSpec(wanted.Inline)
	case v1beta1.AuthzConfigTypeConfigMap, "":
		authz = r.authzFromConfigMap(wanted.ConfigMap)
	default:
		r.invalidAuthz("spec.authzConfig.type is %s; it must be configMap or inline.", quote(wanted.Type))
	}
	if authz == nil {
		return nil
	}
	cedar := authz.Cedar
	cedar.GroupClaimName = cmp.Or(wanted.GroupClaimName, cedar.GroupClaimName)
	cedar.RoleClaimName = cmp.Or(wanted.RoleClaimName, cedar.RoleClaimName)
	cedar.GroupEntityType = cmp.Or(wanted.GroupEntityType, cedar.GroupEntityType)
	return authz
}

func (r *renderer) authzFromSpec(inline *v1beta1.InlineAuthzConfig) *runconfig.Authz {
	if inline == nil {
		r.invalidAuthz("spec.authzConfig.type is inline, but spec.authzConfig.inline is missing.")
		return nil
	}
	if provider := inline.PrimaryUpstreamProvider; provider != "" {
		r.notice(v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored, ReasonPrimaryUpstreamProviderIgnored,
			"spec.authzConfig.inline.primaryUpstreamProvider %s has no effect on an MCPServer.", quote(provider))
	}
	cedar := &runconfig.Cedar{
		Policies:     inline.Policies,
		EntitiesJSON: cmp.Or(inline.EntitiesJSON, runconfig.NoEntities),
	}
	if err := cedar.Validate(); err != nil {
		r.invalidAuthz("spec.authzConfig.inline cannot be used: %s.", oneLine(err))
		return nil
	}
	return &runconfig.Authz{Version: runconfig.AuthzVersion, Type: runconfig.AuthzTypeCedar, Cedar: cedar}
}

func (r *renderer) authzFromConfigMap(ref *v1beta1.ConfigMapAuthzRef) *runconfig.Authz {
	if ref == nil || ref.Name == "" {
		r.invalidAuthz("spec.authzConfig.type is configMap, but spec.authzConfig.configMap.name is missing.")
		return nil
	}
	configMap, key := r.in.AuthzConfigMap, cmp.Or(ref.Key, runconfig.AuthzKey)
	if configMap == nil {
		r.invalid(v1beta1.ConditionAuthzConfigValidated, ReasonAuthzConfigMapNotFound,
			"The ConfigMap %s of spec.authzConfig does not exist.", quote(ref.Name))
		return nil
	}
	text, ok := configMap.Data[key]
	if !ok {
		r.invalid(v1beta1.ConditionAuthzConfigValidated, ReasonAuthzConfigMapNotFound,
			"The ConfigMap %s of spec.authzConfig has no key %s.", quote(ref.Name), quote(key))
		return nil
	}
	authz, err := runconfig.ParseAuthz(text)
	if err != nil {
		r.invalidAuthz("The key %s of ConfigMap %s is not an authorization configuration: %s.",
			quote(key), quote(ref.Name), oneLine(err))
		return nil
	}
	return authz
}

func (r *renderer) invalidAuthz(format string, args ...any) {
	r.invalid(v1beta1.ConditionAuthzConfigValidated, ReasonInvalidAuthzConfig, format, args...)
}
