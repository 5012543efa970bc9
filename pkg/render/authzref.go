// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/freehold-dev/freehold/pkg/configs"

// resolveAuthz says which requests the proxy lets through.
func (r *renderer) resolveAuthz() {
	ref, found := refer(r, configs.AuthzConfigRef)
	if ref == nil {
		return
	}
	if r.server.Spec.AuthzConfig != nil {
		r.hold(ref, ref.Invalid, "spec.authzConfig and spec.authzConfigRef are both set; set only one.")
		return
	}
	check := func() (err error) { r.proxy.authz, err = configs.Authz(&found.Spec); return err }
	if !r.usable(ref, check) {
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
