// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

// Capped returns the intent of a workload's number of replicas where there are more pods than the one that there may be: what
// the spec asks for, which is an intent of the writer and at most one, or one.
func (r *Result) Capped(writer string, kind schema.GroupKind, name, namespace string) (config runtime.ApplyConfiguration, replicas int32) {
	replicas = 1
	for _, intent := range r.Intents {
		if intent.Writer == writer {
			replicas = replicasOf(intent.Config)
		}
	}
	config = Replicas(kind, name, namespace, &replicas)
	return config, replicas
}

// replicasOf is the number that Replicas was given.
func replicasOf(config runtime.ApplyConfiguration) int32 {
	var replicas *int32
	switch config := config.(type) {
	case *appsv1ac.StatefulSetApplyConfiguration:
		replicas = config.Spec.Replicas
	case *appsv1ac.DeploymentApplyConfiguration:
		replicas = config.Spec.Replicas
	}
	return *replicas
}

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
