// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// configMaps renders the ConfigMaps and returns the checksum of the RunConfig.
func (r *renderer) configMaps(document *runconfig.RunConfig) string {
	text, err := document.JSON()
	if err != nil {
		// The document holds nothing that JSON cannot express, so this is for the day when that changes.
		r.invalidSpec(ReasonInvalidEnv, "The RunConfig cannot be written: %v.", err)
	}
	data := map[string]string{runconfig.Key: text}
	labels := runConfigLabels(r.name)
	checksum := runconfig.Checksum(data, labels)
	name := RunConfigName(r.name)
	r.want(vocabulary.RunConfig, kindConfigMap, name, corev1ac.ConfigMap(name, r.namespace).
		WithOwnerReferences(r.owner()).
		WithLabels(labels).
		WithAnnotations(map[string]string{v1beta1.AnnotationContentChecksum: checksum}).
		WithData(data))

	name = InlineAuthzName(r.name)
	if inline := r.inlineAuthz(); inline != nil {
		text, err := runconfig.InlineDocument(inline.Policies, cmp.Or(inline.EntitiesJSON, runconfig.NoEntities))
		if err != nil {
			r.invalid(v1beta1.ConditionAuthzConfigValidated, ReasonInvalidAuthzConfig,
				"spec.authzConfig.inline cannot be written: %v.", err)
		}
		r.want(vocabulary.Authz, kindConfigMap, name, corev1ac.ConfigMap(name, r.namespace).
			WithOwnerReferences(r.owner()).
			WithLabels(inlineAuthzLabels(r.name)).
			WithData(map[string]string{runconfig.AuthzKey: text}))
	} else {
		r.wantNot(kindConfigMap, name)
	}
	return checksum
}
