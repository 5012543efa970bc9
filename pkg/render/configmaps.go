// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// proxyConfig is what the proxy's pod template says about the ConfigMaps that are rendered for it.
type proxyConfig struct {
	// checksum of the RunConfig, as ToolHive makes it.
	checksum string
	// runConfig and inlineAuthz are their names; inlineAuthz is empty when there is none.
	runConfig, inlineAuthz string
}

// configMaps renders the ConfigMaps. They are named by their content and immutable, so all pods of a revision of the
// proxy read the same content.
func (r *renderer) configMaps(document *runconfig.RunConfig) proxyConfig {
	text, err := document.JSON()
	if err != nil {
		// The document holds nothing that JSON cannot express, so this is for the day when that changes.
		r.invalidSpec(v1beta1.ReasonInvalidEnv, "The RunConfig cannot be written: %v.", err)
	}
	data := map[string]string{runconfig.Key: text}
	labels := runConfigLabels(r.name)
	config := proxyConfig{checksum: runconfig.Checksum(data, labels)}
	data = salted(data, r.in.salts[inventory.RunConfig])
	config.runConfig = inventory.RunConfig.ContentName(r.name, data)
	r.want(inventory.RunConfig, corev1ac.ConfigMap(config.runConfig, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(labels).
		WithAnnotations(map[string]string{v1beta1.AnnotationContentChecksum: config.checksum}).
		WithImmutable(true).
		WithData(data))

	inline := r.inlineAuthz()
	if inline == nil {
		return config
	}
	text, err = runconfig.InlineDocument(inline.Policies, cmp.Or(inline.EntitiesJSON, runconfig.NoEntities))
	if err != nil {
		r.invalid(v1beta1.ConditionAuthzConfigValidated, v1beta1.ReasonInvalidAuthzConfig,
			"spec.authzConfig.inline cannot be written: %v.", err)
	}
	data = salted(map[string]string{runconfig.AuthzKey: text}, r.in.salts[inventory.InlineAuthz])
	config.inlineAuthz = inventory.InlineAuthz.ContentName(r.name, data)
	r.want(inventory.InlineAuthz, corev1ac.ConfigMap(config.inlineAuthz, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(inlineAuthzLabels(r.name)).
		WithImmutable(true).
		WithData(data))
	return config
}
