// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// resolveAuthz says which requests the proxy lets through.
func (r *renderer) resolveAuthz() {
	wanted := r.server.Spec.AuthzConfigRef
	if wanted == nil {
		return
	}
	ref := &reference{
		field: "authzConfigRef", kind: configs.AuthzConfig, name: wanted.Name, hash: &r.hashes.Authz,
		condition: v1beta1.ConditionAuthzConfigRefValidated, valid: v1beta1.ReasonAuthzConfigRefValid,
		notFound: v1beta1.ReasonAuthzConfigRefNotFound, invalid: v1beta1.ReasonAuthzConfigRefNotValid, unavailable: v1beta1.ReasonAuthzConfigRefError,
	}
	if r.server.Spec.AuthzConfig != nil {
		r.hold(ref, ref.invalid, "spec.authzConfig and spec.authzConfigRef are both set; set only one.")
		return
	}
	check := func(c *v1beta1.MCPAuthzConfig) (err error) {
		r.proxy.authz, err = configs.Authz(&c.Spec)
		return err
	}
	if !usable(r, ref, r.in.References.Authz, check) {
		return
	}
	if provider := r.proxy.authz.PrimaryUpstreamProvider; provider != "" && !r.hasUpstream() {
		r.amend(ref, "its primary_upstream_provider %s names an authorization server that the proxy does not have, so the proxy "+
			"denies every request", quote(provider))
	}
	if r.server.Spec.OIDCConfigRef == nil {
		r.amend(ref, sameCaller)
	}
}
