// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// rivals is apply.Target.Rivals. An environment variable has a value or a source. If another field manager sets the one where the
// configuration sets the other, server-side apply keeps both, and the API server refuses the result.
func rivals(config any) (paths []string) {
	var template *corev1ac.PodTemplateSpecApplyConfiguration
	switch workload := config.(type) {
	case *appsv1ac.DeploymentApplyConfiguration:
		if workload.Spec != nil {
			template = workload.Spec.Template
		}
	case *appsv1ac.StatefulSetApplyConfiguration:
		if workload.Spec != nil {
			template = workload.Spec.Template
		}
	}
	if template == nil || template.Spec == nil {
		return nil
	}
	of := func(list string, containers []corev1ac.ContainerApplyConfiguration) {
		for i := range containers {
			for _, env := range containers[i].Env {
				if containers[i].Name == nil || env.Name == nil {
					continue
				}
				var rival string
				switch {
				case env.ValueFrom != nil:
					rival = "value"
				case env.Value != nil && *env.Value != "":
					rival = "valueFrom"
				default:
					continue // An empty value may stand beside a source.
				}
				paths = append(paths, fieldpath.MakePathOrDie("spec", "template", "spec", list, fieldpath.KeyByFields("name", *containers[i].Name),
					"env", fieldpath.KeyByFields("name", *env.Name), rival).String())
			}
		}
	}
	of("initContainers", template.Spec.InitContainers)
	of("containers", template.Spec.Containers)
	return paths
}
