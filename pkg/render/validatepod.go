// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// validatePodSpec finds the mistakes in a pod template that are common and cheap to check. All others are the API
// server's to find.
func (r *renderer) validatePodSpec(spec *corev1.PodSpec) {
	const path = podTemplatePath + ".spec."
	if policy := spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		r.invalidPodTemplate("%srestartPolicy is %s; pods of a StatefulSet are always restarted.", path, quote(string(policy)))
	}
	if len(spec.EphemeralContainers) > 0 {
		r.invalidPodTemplate("%sephemeralContainers cannot be set in a pod template.", path)
	}
	volumes := make(map[string]bool, len(spec.Volumes))
	for i, v := range spec.Volumes {
		volumes[v.Name] = true
		if e := v.Ephemeral; e != nil && e.VolumeClaimTemplate != nil && setsMoreThanKeys(&e.VolumeClaimTemplate.ObjectMeta) {
			r.invalidPodTemplate("%svolumes[%d].ephemeral.volumeClaimTemplate.metadata can hold labels and annotations only.",
				path, i)
		}
	}
	names := map[string]bool{}
	for i := range spec.InitContainers {
		r.validateContainer(&spec.InitContainers[i], fmt.Sprintf("%sinitContainers[%d]", path, i), volumes)
		names[spec.InitContainers[i].Name] = true
	}
	for i := range spec.Containers {
		c, at := &spec.Containers[i], fmt.Sprintf("%scontainers[%d]", path, i)
		r.validateContainer(c, at, volumes)
		if names[c.Name] {
			r.invalidPodTemplate("%s.name %s is also the name of an init container.", at, quote(c.Name))
		}
	}
	if names[workload.BackendContainer] {
		r.invalidPodTemplate("%sinitContainers cannot have one called %s, which is the MCP server's.", path, workload.BackendContainer)
	}
}

func (r *renderer) validateContainer(c *corev1.Container, path string, volumes map[string]bool) {
	if errs := validation.IsDNS1123Label(c.Name); len(errs) > 0 {
		r.invalidPodTemplate("%s.name %s is not the name of a container: %s.", path, quote(c.Name), errs[0])
	}
	// The image of the MCP server's own container is spec.image.
	if c.Image == "" && c.Name != workload.BackendContainer {
		r.invalidPodTemplate("%s, called %s, has no image.", path, quote(c.Name))
	}
	for _, text := range impossible(c.Resources.Limits, c.Resources.Requests) {
		r.invalidPodTemplate("%s.resources.%s.", path, text)
	}
	for i := range c.Env {
		if errs := validation.IsRelaxedEnvVarName(c.Env[i].Name); len(errs) > 0 {
			r.invalidPodTemplate("%s.env[%d].name %s is not the name of an environment variable: %s.",
				path, i, quote(c.Env[i].Name), errs[0])
		}
		if c.Env[i].Value != "" && c.Env[i].ValueFrom != nil {
			r.invalidPodTemplate("%s.env[%d], of variable %s, has both value and valueFrom.", path, i, quote(c.Env[i].Name))
		}
	}
	for i := range c.VolumeMounts {
		if name := c.VolumeMounts[i].Name; !volumes[name] {
			r.invalidPodTemplate("%s.volumeMounts[%d] names the volume %s, which the pod does not have.", path, i, quote(name))
		}
	}
}

// setsMoreThanKeys reports whether metadata sets anything but labels and annotations.
func setsMoreThanKeys(meta *metav1.ObjectMeta) bool {
	rest := meta.DeepCopy()
	rest.Labels, rest.Annotations = nil, nil
	return !equality.Semantic.DeepEqual(rest, &metav1.ObjectMeta{})
}

// sortedTexts returns the texts of errors in a stable order.
func sortedTexts(errs field.ErrorList) []string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, oneLine(err))
	}
	slices.Sort(texts)
	return texts
}
