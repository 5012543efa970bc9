// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	_ "github.com/freehold-dev/freehold/pkg/apply"
	_ "github.com/freehold-dev/freehold/pkg/render"
	_ "github.com/freehold-dev/freehold/pkg/status"
	_ "github.com/freehold-dev/freehold/pkg/writers"
)

// Bind hands the deletion of pods to pkg/apply. Nothing but that is open to it.
func Bind(ctx context.Context, c kubernetes.Interface) {
	_ = func(o metav1.DeleteOptions) error { return c.CoreV1().Pods("").Delete(ctx, "", o) }

	_, _ = c.CoreV1().Pods("").Apply(ctx, corev1ac.Pod("", ""), metav1.ApplyOptions{}) // want write write
	_ = metav1.ApplyOptions{Force: true}                                               // want force write
}
