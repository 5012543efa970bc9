// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// scheduled is what an MCPServer and a pod have in common, with the types of either.
type scheduled[T, A any] struct {
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []T               `json:"tolerations,omitempty"`
	Affinity     *A                `json:"affinity,omitempty"`
}

// TestScheduling: every constraint that a pod can have reaches the pod of the proxy as it was written. Our API types repeat
// those of Kubernetes; a field that one of them lacks, or has under another name, would be lost here.
func TestScheduling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		core := rapid.Make[scheduled[corev1.Toleration, corev1.Affinity]]().Draw(t, "constraints")
		written, err := json.Marshal(core)
		if err != nil {
			t.Fatal(err)
		}
		var ours scheduled[v1beta1.Toleration, v1beta1.Affinity]
		if err := json.Unmarshal(written, &ours); err != nil {
			t.Fatal(err)
		}
		r := &renderer{server: newServer(func(s *v1beta1.MCPServer) {
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				NodeSelector: ours.NodeSelector, Tolerations: ours.Tolerations, Affinity: ours.Affinity,
			}}
		})}
		pod := corev1ac.PodSpec()
		r.schedule(pod)
		applied, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		var want, got corev1.PodSpec
		if err := errors.Join(json.Unmarshal(written, &want), json.Unmarshal(applied, &got)); err != nil {
			t.Fatal(err)
		}
		if len(r.problems) > 0 || !equality.Semantic.DeepEqual(want, got) {
			t.Errorf("problems %+v; (-written +applied):\n%s", r.problems, cmp.Diff(want, got))
		}
	})
}
