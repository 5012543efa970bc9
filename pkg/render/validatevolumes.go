// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// refusedInPaths are characters that ToolHive refuses in the paths of a mount, besides the colon that parts
// them.
const refusedInPaths = ":$&;|`\\\x00"

// validateVolumes checks the host paths mounted into the proxy's pod.
func (r *renderer) validateVolumes() {
	const field = "spec.volumes"
	names := map[string]string{
		volumeRunConfig: "the operator",
		volumeAuthz:     "the operator",
		volumeRedisCA:   "the operator",
	}
	mounts := map[string]string{
		pathRunConfig: "the operator",
		pathAuthz:     "the operator",
		pathRedisCA:   "the operator",
	}
	for i, v := range r.server.Spec.Volumes {
		at := indexed(field, i)
		if errs := validation.IsDNS1123Label(v.Name); len(errs) > 0 {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.name %s is not the name of a volume: %s.", at, quote(v.Name), errs[0])
		} else if taken, ok := names[v.Name]; ok {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.name %s is already used by %s.", at, quote(v.Name), taken)
		} else {
			names[v.Name] = at
		}

		r.validatePath(at+".hostPath", v.HostPath)
		if strings.Contains("/"+v.HostPath+"/", "/../") {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.hostPath %s must not contain '..'.", at, quote(v.HostPath))
		}
		r.validatePath(at+".mountPath", v.MountPath)
		mount := path.Clean(v.MountPath)
		if taken, ok := mounts[mount]; ok {
			r.invalidSpec(v1beta1.ReasonInvalidVolume, "%s.mountPath %s is already used by %s.", at, quote(v.MountPath), taken)
		} else {
			mounts[mount] = at
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
