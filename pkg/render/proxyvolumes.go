// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// Volumes of the proxy's pod that the operator adds, and where the proxyrunner looks for them.
const (
	volumeRunConfig = "runconfig"
	volumeAuthz     = "authz-config"
	volumeRedisCA   = "session-redis-tls-ca"

	pathRunConfig = "/etc/runconfig"
	pathAuthz     = "/etc/toolhive/authz"
	pathRedisCA   = "/etc/toolhive/session-redis-tls/" + fileRedisCA

	// fileRedisCA is a file of its own in its directory, mounted as such: ToolHive does so.
	fileRedisCA = "ca.crt"
	// modeRedisCA lets the proxy's user alone read the file.
	modeRedisCA = 0o400
)

// proxyVolumes returns the volumes of the proxy's pod and their mounts, in the same order. The user's host paths are
// mounted here and not into the backend: that is where ToolHive mounts them.
func (r *renderer) proxyVolumes(config proxyConfig) ([]*corev1ac.VolumeApplyConfiguration, []*corev1ac.VolumeMountApplyConfiguration) {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName(volumeRunConfig).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(config.runConfig)),
	}
	mounts := []*corev1ac.VolumeMountApplyConfiguration{readOnlyMount(volumeRunConfig, pathRunConfig)}

	add := func(all []mounted) {
		for _, m := range all {
			volumes, mounts = append(volumes, m.volume), append(mounts, m.mount)
		}
	}
	add(r.proxy.secrets)
	first := len(volumes)
	for i := range r.server.Spec.Volumes {
		volume, mount := hostVolume(&r.server.Spec.Volumes[i])
		volumes, mounts = append(volumes, volume), append(mounts, mount)
	}

	if configMap, key := r.authzSource(config); configMap != "" {
		volumes = append(volumes, corev1ac.Volume().WithName(volumeAuthz).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(configMap).
				WithItems(corev1ac.KeyToPath().WithKey(key).WithPath(runconfig.AuthzKey))))
		mounts = append(mounts, readOnlyMount(volumeAuthz, pathAuthz))
	}

	add(slices.Concat(r.proxy.issuerBundle, r.proxy.collectorBundle, r.proxy.authServerFiles))
	if secret, key := r.redisCA(); secret != "" {
		volumes = append(volumes, corev1ac.Volume().WithName(volumeRedisCA).
			WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(modeRedisCA).
				WithItems(corev1ac.KeyToPath().WithKey(key).WithPath(fileRedisCA))))
		mounts = append(mounts, readOnlyMount(volumeRedisCA, pathRedisCA).WithSubPath(fileRedisCA))
	}
	r.validateTaken(volumes, mounts, first)
	return volumes, mounts
}

// hostVolume returns a volume for a host path, and its mount.
func hostVolume(v *v1beta1.Volume) (*corev1ac.VolumeApplyConfiguration, *corev1ac.VolumeMountApplyConfiguration) {
	mount := corev1ac.VolumeMount().WithName(v.Name).WithMountPath(v.MountPath)
	if v.ReadOnly {
		mount.WithReadOnly(true)
	}
	return corev1ac.Volume().WithName(v.Name).WithHostPath(corev1ac.HostPathVolumeSource().WithPath(v.HostPath)), mount
}

// authzSource returns the ConfigMap, and the key in it, of the authorization configuration; empty when there is none.
func (r *renderer) authzSource(config proxyConfig) (configMap, key string) {
	switch authz := r.server.Spec.AuthzConfig; {
	case config.inlineAuthz != "":
		return config.inlineAuthz, runconfig.AuthzKey
	case authz != nil && authz.Type != v1beta1.AuthzConfigTypeInline && authz.ConfigMap != nil:
		return authz.ConfigMap.Name, cmp.Or(authz.ConfigMap.Key, runconfig.AuthzKey)
	}
	return "", ""
}

func readOnlyMount(name, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(name).WithMountPath(path).WithReadOnly(true)
}
