// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// Intent returns the apply configuration of a status. Empty fields are left out, readyReplicas at 0 among them:
// the API treats them as absent.
func Intent(server *v1beta1.MCPServer, status v1beta1.MCPServerStatus) *toolhivev1beta1ac.MCPServerApplyConfiguration {
	config := toolhivev1beta1ac.MCPServerStatus().
		WithPhase(status.Phase).
		WithMessage(status.Message).
		WithObservedGeneration(status.ObservedGeneration)
	if status.ReadyReplicas != 0 {
		config.WithReadyReplicas(status.ReadyReplicas)
	}
	if status.URL != "" {
		config.WithURL(status.URL)
	}
	for ref := range configs.Hashed() {
		if hash := *ref.Hash(&status); hash != "" {
			ref.WithHash(config, hash)
		}
	}
	config.WithConditions(ConditionConfigs(status.Conditions)...)
	return toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithStatus(config)
}

// ConditionConfigs returns the apply configurations of conditions, in their order.
func ConditionConfigs(conditions []metav1.Condition) []*metav1ac.ConditionApplyConfiguration {
	configs := make([]*metav1ac.ConditionApplyConfiguration, 0, len(conditions))
	for _, c := range conditions {
		configs = append(configs, metav1ac.Condition().
			WithType(c.Type).
			WithStatus(c.Status).
			WithReason(c.Reason).
			WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).
			WithLastTransitionTime(c.LastTransitionTime))
	}
	return configs
}
