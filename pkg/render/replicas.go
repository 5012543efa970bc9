// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

// Replicas returns the intent of a workload's number of replicas; nil names none.
func Replicas(kind schema.GroupKind, name, namespace string, replicas *int32) runtime.ApplyConfiguration {
	if kind == kindStatefulSet {
		config := appsv1ac.StatefulSet(name, namespace)
		if replicas != nil {
			config.WithSpec(appsv1ac.StatefulSetSpec().WithReplicas(*replicas))
		}
		return config
	}
	config := appsv1ac.Deployment(name, namespace)
	if replicas != nil {
		config.WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*replicas))
	}
	return config
}
