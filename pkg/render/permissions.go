// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// permissionProfile is the profile recorded in the RunConfig, with the host paths of spec.volumes.
func (r *renderer) permissionProfile() *runconfig.PermissionProfile {
	profile := r.baseProfile()
	if profile == nil {
		return nil
	}
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

func (r *renderer) baseProfile() *runconfig.PermissionProfile {
	ref := r.server.Spec.PermissionProfile
	if ref == nil {
		profile, _ := runconfig.BuiltinProfile(runconfig.ProfileNetwork)
		return profile
	}
	switch ref.Type {
	case v1beta1.PermissionProfileTypeBuiltin, "":
		profile, ok := runconfig.BuiltinProfile(ref.Name)
		if !ok {
			r.invalidSpec(v1beta1.ReasonUnknownPermissionProfile,
				"spec.permissionProfile.name %s is not a built-in profile; there are %s, %s and %s.",
				quote(ref.Name), runconfig.ProfileNone, runconfig.ProfileNetwork, runconfig.ProfileStdio)
		}
		return profile
	case v1beta1.PermissionProfileTypeConfigMap:
		return r.profileFromConfigMap(ref)
	}
	r.invalidSpec(v1beta1.ReasonUnknownPermissionProfile,
		"spec.permissionProfile.type is %s; it must be builtin or configmap.", quote(ref.Type))
	return nil
}

// profileFromConfigMap reads the profile. ToolHive's operator looks for a file of its own instead, and fails.
func (r *renderer) profileFromConfigMap(ref *v1beta1.PermissionProfileRef) *runconfig.PermissionProfile {
	if errs := validation.IsConfigMapKey(ref.Key); len(errs) > 0 {
		r.invalidSpec(v1beta1.ReasonInvalidPermissionProfile,
			"spec.permissionProfile.key %s is not a key of a ConfigMap: %s.", quote(ref.Key), errs[0])
		return nil
	}
	configMap := r.in.PermissionProfileConfigMap
	if configMap == nil {
		r.invalidSpec(v1beta1.ReasonPermissionProfileNotFound,
			"The ConfigMap %s of spec.permissionProfile does not exist.", quote(ref.Name))
		return nil
	}
	text, ok := configMap.Data[ref.Key]
	if !ok {
		r.invalidSpec(v1beta1.ReasonPermissionProfileNotFound,
			"The ConfigMap %s of spec.permissionProfile has no key %s.", quote(ref.Name), quote(ref.Key))
		return nil
	}
	profile, err := runconfig.ParseProfile(text)
	if err != nil {
		r.invalidSpec(v1beta1.ReasonInvalidPermissionProfile,
			"The key %s of ConfigMap %s is not a permission profile: %s.", quote(ref.Key), quote(ref.Name), oneLine(err))
		return nil
	}
	return profile
}
