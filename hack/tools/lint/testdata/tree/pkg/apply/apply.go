// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1" // want depguard:apply
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager"
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager/managers" // want depguard:apply
	_ "github.com/freehold-dev/freehold/pkg/ownership"
	_ "github.com/freehold-dev/freehold/pkg/runconfig" // want depguard:apply
)

// Write does what may be done, and then what may not, not even here.
func Write(ctx context.Context, c kubernetes.Interface, config *corev1ac.ConfigMapApplyConfiguration) error {
	maps := c.CoreV1().ConfigMaps("")
	options := metav1.ApplyOptions{FieldManager: "freehold-test"}
	if _, err := maps.Apply(ctx, config, options); err != nil {
		return err
	}
	if _, err := maps.Patch(ctx, "", types.JSONPatchType, nil, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "", metav1.DeleteOptions{}); err != nil {
		return err
	}

	options.Force = true                                             // want force
	_, _ = maps.Apply(ctx, config, metav1.ApplyOptions{Force: true}) // want force
	yes := true
	_, _ = maps.Patch(ctx, "", types.ApplyPatchType, nil, metav1.PatchOptions{Force: &yes})        // want force
	_, _ = maps.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})                           // want never-write
	_, _ = maps.Update(ctx, &corev1.ConfigMap{}, metav1.UpdateOptions{})                           // want never-write
	_ = maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})                   // want never-write
	_ = c.CoreV1().RESTClient().Patch(types.ApplyPatchType).Param("force", "true").Do(ctx).Error() // want raw raw
	_, _ = c.CoreV1().ConfigMaps("").Get(ctx, "", metav1.GetOptions{})                             // want read
	return nil
}
