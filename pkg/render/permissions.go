// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// permissionProfile returns the profile recorded in the RunConfig: always the same one, with the host paths of spec.volumes.
//
// Since v0.53.0 ToolHive ignores spec.permissionProfile, which Kubernetes never enforced: with a crafted one a user could
// make the operator read files of its own container.
func (r *renderer) permissionProfile() *runconfig.PermissionProfile {
	profile := runconfig.NetworkProfile()
	for _, v := range r.server.Spec.Volumes {
		mount := v.HostPath + ":" + v.MountPath
		if v.ReadOnly {
			profile.Read = append(profile.Read, mount)
		} else {
			profile.Write = append(profile.Write, mount)
		}
	}
	return profile
}

// notePermissionProfile reports that a permission profile has no effect.
func (r *renderer) notePermissionProfile() {
	if r.server.Spec.PermissionProfile != nil {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonPermissionProfileUnsupported,
			"spec.permissionProfile has no effect: Kubernetes does not enforce it. Remove it; restrict what the MCP server may "+
				"reach with a NetworkPolicy.")
	}
}
