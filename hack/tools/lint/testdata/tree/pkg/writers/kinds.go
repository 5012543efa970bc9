// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	_ "github.com/freehold-dev/freehold/pkg/apply"
	_ "github.com/freehold-dev/freehold/pkg/render"
)

// Bind hands typed clients to pkg/apply. Nothing but that is open to it.
func Bind(ctx context.Context, c kubernetes.Interface, s versioned.Interface) {
	_ = func(config *corev1ac.PodApplyConfiguration, o metav1.ApplyOptions) (*corev1.Pod, error) {
		return c.CoreV1().Pods("").Apply(ctx, config, o)
	}
	_ = func(o metav1.DeleteOptions) error { return c.CoreV1().Pods("").Delete(ctx, "", o) }
	_ = s.ToolhiveV1beta1().MCPServers("").ApplyStatus

	_ = func(o metav1.PatchOptions) (*corev1.Pod, error) {
		return c.CoreV1().Pods("").Patch(ctx, "", types.JSONPatchType, nil, o)
	}

	_, _ = c.CoreV1().Pods("").Patch(ctx, "", types.ApplyYAMLPatchType, nil, metav1.PatchOptions{}) // want write
	_, _ = c.CoreV1().Pods("").UpdateStatus(ctx, nil, metav1.UpdateOptions{})                       // want never-write write
	_ = metav1.ApplyOptions{Force: true}                                                            // want force
}
