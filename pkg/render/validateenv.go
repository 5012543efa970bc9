// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// validateEnvironment checks the environment of both tiers, but for that in podTemplateSpec.
func (r *renderer) validateEnvironment() {
	for i, v := range r.server.Spec.Env {
		path := indexed(sourceEnv, i)
		r.validateEnvName(path+".name", v.Name)
		// The values go into the RunConfig, and the proxyrunner does not start with a line break in one.
		if strings.ContainsAny(v.Value, "\r\n") {
			r.invalidSpec(v1beta1.ReasonInvalidEnv, "%s.value, of variable %s, has a line break.", path, quote(v.Name))
		}
	}
	for i, secret := range r.server.Spec.Secrets {
		path := indexed(sourceSecrets, i)
		r.validateSecretKey(path, secret.Name, secret.Key)
		target := path + ".targetEnvName"
		if secret.TargetEnvName == "" {
			target = path + ".key"
		}
		r.validateEnvName(target, cmp.Or(secret.TargetEnvName, secret.Key))
	}
	if d := r.proxyOverrides(); d != nil {
		for i, v := range d.Env {
			r.validateEnvName(indexed(sourceProxyEnv, i)+".name", v.Name)
		}
	}
}

func (r *renderer) validateEnvName(path, name string) {
	if errs := validation.IsRelaxedEnvVarName(name); len(errs) > 0 {
		r.invalidSpec(v1beta1.ReasonInvalidEnv, "%s %s is not the name of an environment variable: %s.", path, quote(name), errs[0])
	}
}

// validateOverrides checks what the user adds to the proxy's objects.
func (r *renderer) validateOverrides() {
	const path = "spec.resourceOverrides."
	metadata := func(where string, m *v1beta1.ResourceMetadataOverrides) {
		if m != nil {
			r.validateMetadata(v1beta1.ConditionSpecValid, v1beta1.ReasonInvalidMetadata, path+where, m.Labels, m.Annotations)
		}
	}
	if d := r.proxyOverrides(); d != nil {
		metadata("proxyDeployment", &d.ResourceMetadataOverrides)
		metadata("proxyDeployment.podTemplateMetadataOverrides", d.PodTemplateMetadataOverrides)
		for i, secret := range d.ImagePullSecrets {
			// An empty name is the schema's default, and means none.
			if errs := validation.IsDNS1123Subdomain(secret.Name); secret.Name != "" && len(errs) > 0 {
				r.invalidSpec(v1beta1.ReasonInvalidSecretRef, "%s.name %s is not the name of a Secret: %s.",
					indexed(path+"proxyDeployment.imagePullSecrets", i), quote(secret.Name), errs[0])
			}
		}
	}
	if o := r.server.Spec.ResourceOverrides; o != nil {
		metadata("proxyService", o.ProxyService)
	}
}

// validateMetadata checks labels and annotations as the API server would.
func (r *renderer) validateMetadata(condition, reason, path string, labels, annotations map[string]string) {
	at := field.NewPath(path)
	errs := metav1validation.ValidateLabels(labels, at.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(annotations, at.Child("annotations"))...)
	// They come in the order of a map.
	for _, text := range sortedTexts(errs) {
		r.invalid(condition, reason, "%s.", text)
	}
}
