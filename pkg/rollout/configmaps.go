// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// ConfigMapsOf returns the names of the ConfigMaps that a pod's volumes are made from, sorted and without repetition.
func ConfigMapsOf(pod *corev1.PodSpec) []string {
	var names []string
	for i := range pod.Volumes {
		if source := pod.Volumes[i].ConfigMap; source != nil {
			names = append(names, source.Name)
		}
		if projected := pod.Volumes[i].Projected; projected != nil {
			for _, source := range projected.Sources {
				if source.ConfigMap != nil {
					names = append(names, source.ConfigMap.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ReadTemplate reports whether all pods of a Deployment read the ConfigMaps that its template names, besides those that every pod reads.
// One that does not is to be replaced, whether or not the Deployment's controller has looked at the template.
func ReadTemplate(d *appsv1.Deployment, pods []*corev1.Pod) bool {
	wanted := ConfigMapsOf(&d.Spec.Template.Spec)
	return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		read := ConfigMapsOf(&pod.Spec)
		return slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(read, name) })
	})
}
