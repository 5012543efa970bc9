// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// refusedInPaths are characters that ToolHive refuses in the paths of a mount, besides the colon that parts
// them.
const refusedInPaths = ":$&;|`\\\x00"

// validateVolumes checks the host paths mounted into the proxy's pod.
func (r *renderer) validateVolumes() {
	const field = "spec.volumes"
	for i, v := range r.server.Spec.Volumes {
		at := indexed(field, i)
		if errs := validation.IsDNS1123Label(v.Name); len(errs) > 0 {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.name %s is not the name of a volume: %s.", at, quote(v.Name), errs[0])
		}
		r.validatePath(at+".hostPath", v.HostPath)
		if strings.Contains("/"+v.HostPath+"/", "/../") {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.hostPath %s must not contain '..'.", at, quote(v.HostPath))
		}
		r.validatePath(at+".mountPath", v.MountPath)
	}
}

// validateTaken refuses volumes of the user whose name or path another volume of the proxy's pod has. The user's begin at first.
func (r *renderer) validateTaken(volumes []*corev1ac.VolumeApplyConfiguration, mounts []*corev1ac.VolumeMountApplyConfiguration, first int) {
	user, names, paths := r.server.Spec.Volumes, map[string]string{}, map[string]string{}
	for i := range volumes {
		if i < first || i >= first+len(user) {
			names[*volumes[i].Name], paths[path.Clean(*mounts[i].MountPath)] = sourceOperator, sourceOperator
		}
	}
	for i, v := range user {
		at, mount := indexed("spec.volumes", i), path.Clean(v.MountPath)
		if taken, ok := names[v.Name]; ok {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.name %s is already used by %s.", at, quote(v.Name), taken)
		} else {
			names[v.Name] = at
		}
		if taken, ok := paths[mount]; ok {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.mountPath %s is already used by %s.", at, quote(v.MountPath), taken)
		} else {
			paths[mount] = at
		}
	}
}

func (r *renderer) validatePath(field, value string) {
	switch {
	case !path.IsAbs(value):
		r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s %s is not an absolute path.", field, quote(value))
	case strings.ContainsAny(value, refusedInPaths):
		r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s %s has one of the characters : $ & ; | ` \\ that ToolHive does not accept.",
			field, quote(value))
	}
}
