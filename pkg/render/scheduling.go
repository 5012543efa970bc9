// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// schedule adds the user's constraints to the proxy's pod, as they are written: the operator has none of its own.
func (r *renderer) schedule(pod *corev1ac.PodSpecApplyConfiguration) {
	overrides := r.proxyOverrides()
	if overrides == nil {
		return
	}
	if len(overrides.NodeSelector) > 0 {
		pod.WithNodeSelector(overrides.NodeSelector)
	}
	for i := range overrides.Tolerations {
		toleration := corev1ac.Toleration()
		r.convert("tolerations", overrides.Tolerations[i], toleration)
		pod.WithTolerations(toleration)
	}
	if overrides.Affinity != nil {
		affinity := corev1ac.Affinity()
		r.convert("affinity", overrides.Affinity, affinity)
		pod.WithAffinity(affinity)
	}
}

// convert copies between types of one shape.
func (r *renderer) convert(field string, from, to any) {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		// The shapes are the same, so this is for the day when they are not any more.
		r.invalidSpec(v1beta1.ReasonInvalidMetadata, "spec.resourceOverrides.proxyDeployment.%s cannot be used: %s.", field, oneLine(err))
	}
}
