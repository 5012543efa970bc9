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
	// The types have the shape of the core types, so that JSON carries one over to the other, see TestScheduling.
	data, err := json.Marshal(struct {
		NodeSelector map[string]string    `json:"nodeSelector,omitempty"`
		Tolerations  []v1beta1.Toleration `json:"tolerations,omitempty"`
		Affinity     *v1beta1.Affinity    `json:"affinity,omitempty"`
	}{overrides.NodeSelector, overrides.Tolerations, overrides.Affinity})
	if err == nil {
		err = json.Unmarshal(data, pod)
	}
	if err != nil {
		r.invalidSpec(v1beta1.ReasonMalformedSpec, "spec.resourceOverrides.proxyDeployment cannot be used: %s.", oneLine(err))
	}
}
