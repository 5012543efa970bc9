// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

const podTemplatePath = "spec.podTemplateSpec"

// userPodTemplate is spec.podTemplateSpec as an apply configuration, or an empty one. It names exactly what
// the user set, in the form in which the API server stores it.
func (r *renderer) userPodTemplate() *corev1ac.PodTemplateSpecApplyConfiguration {
	empty := corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec())
	raw := r.server.Spec.PodTemplateSpec
	if raw == nil || len(raw.Raw) == 0 {
		return empty
	}
	if found := quantities(raw.Raw, unhandy); len(found) > 0 {
		r.invalidPodTemplate("%s has too many digits, or too large an exponent, for a quantity.", strings.Join(found, ", "))
		return empty
	}
	template := &corev1.PodTemplateSpec{}
	strict, err := kjson.UnmarshalStrict(raw.Raw, template)
	if err != nil {
		// The error of a quantity names neither it nor its place.
		if found := quantities(raw.Raw, unreadable); len(found) > 0 {
			r.invalidPodTemplate("%s is not a quantity such as 500m or 64Mi.", strings.Join(found, ", "))
			return empty
		}
		r.invalidPodTemplate("%s is not a pod template: %s.", podTemplatePath, oneLine(err))
		return empty
	}
	r.backendAccount = r.backendServiceAccount(template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount)
	r.noteIgnoredFields(strict, template)
	r.validateMetadata(v1beta1.ConditionPodTemplateValid, v1beta1.ReasonInvalidPodTemplateSpec,
		podTemplatePath+".metadata", template.Labels, template.Annotations)

	found := len(r.problems)
	r.canonicalise(&template.Spec)
	if len(r.problems) == found {
		r.validatePodSpec(&template.Spec)
	}
	if len(r.problems) > found {
		return empty
	}
	spec, err := podSpecConfig(&template.Spec)
	if err != nil {
		r.invalidPodTemplate("%s cannot be applied: %s.", podTemplatePath, oneLine(err))
		return empty
	}
	r.noteContainers(spec)
	if container := backendContainerOf(spec); container != nil {
		for i := range container.Env {
			r.templateEnv = append(r.templateEnv, variable{sourcePodTemplate, &container.Env[i]})
		}
	}
	return corev1ac.PodTemplateSpec().
		WithLabels(template.Labels).
		WithAnnotations(template.Annotations).
		WithSpec(spec)
}

func (r *renderer) invalidPodTemplate(format string, args ...any) {
	r.invalid(v1beta1.ConditionPodTemplateValid, v1beta1.ReasonInvalidPodTemplateSpec, format, args...)
}

// noteIgnoredFields names what the user wrote to no effect: fields that a pod template does not have, of
// which an apply with them would be refused, fields given twice, and what ToolHive drops or sets itself.
func (r *renderer) noteIgnoredFields(strict []error, template *corev1.PodTemplateSpec) {
	var fields []string
	ignored := func(field string) { fields = append(fields, quote(podTemplatePath+"."+field)) }
	for _, err := range strict {
		if field, ok := errors.AsType[kjson.FieldError](err); ok {
			ignored(field.FieldPath() + " (unknown or given twice)")
		}
	}
	if setsMoreThanKeys(&template.ObjectMeta) {
		ignored("metadata, but for labels and annotations")
	}
	for key, value := range BackendLabels(r.server) {
		if user, ok := template.Labels[key]; ok && user != value {
			ignored("metadata.labels." + key)
		}
	}
	if user, ok := template.Annotations[v1beta1.AnnotationGeneration]; ok && user != ClosedGate {
		ignored("metadata.annotations." + v1beta1.AnnotationGeneration)
	}
	if user := template.Spec.ServiceAccountName; user != "" && user != r.backendAccount {
		ignored("spec.serviceAccountName")
	}
	if user := template.Spec.DeprecatedServiceAccount; user != "" && user != r.backendAccount {
		ignored("spec.serviceAccount")
	}
	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		if c.Name != workload.BackendContainer {
			continue
		}
		at := fmt.Sprintf("spec.containers[%d].", i)
		if c.Image != "" && c.Image != r.server.Spec.Image {
			ignored(at + "image")
		}
		if c.Stdin && !r.stdio() {
			ignored(at + "stdin")
		}
		if c.TTY {
			ignored(at + "tty")
		}
	}
	if len(fields) == 0 {
		return
	}
	slices.Sort(fields)
	r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonFieldsIgnored,
		"Some fields have no effect: %s.", strings.Join(slices.Compact(fields), ", "))
}

// podSpecConfig turns a pod's spec into an apply configuration by way of the JSON that the API server would
// store for it. That form holds no empty strings, numbers or lists where the API omits them, and canonical
// quantities: what is applied is what is there afterwards. What it holds too much, structs that are written
// even when empty, is taken out again.
func podSpecConfig(spec *corev1.PodSpec) (*corev1ac.PodSpecApplyConfiguration, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	config := corev1ac.PodSpec()
	if err := json.Unmarshal(data, config); err != nil {
		return nil, err
	}
	for i := range config.InitContainers {
		dropEmpty(&config.InitContainers[i].Resources)
	}
	for i := range config.Containers {
		dropEmpty(&config.Containers[i].Resources)
	}
	for i := range config.Volumes {
		if e := config.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			dropEmpty(&e.VolumeClaimTemplate.ObjectMetaApplyConfiguration)
		}
	}
	return config, nil
}

// dropEmpty removes a struct in which nothing is set.
func dropEmpty[T any](field **T) {
	var empty T
	if *field != nil && equality.Semantic.DeepEqual(**field, empty) {
		*field = nil
	}
}

// oneLine returns an error's text for a condition's message.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
