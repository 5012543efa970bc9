// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
)

// unsharedSessions is a warning about proxies that do not know each other's sessions although the spec asks for one of them
// at most: somebody else, such as an autoscaler, has set their number. The number itself is left out, so that scaling up
// and down is one piece of news.
func unsharedSessions(o status.Observation) []status.Finding {
	spec := &o.Server.Spec
	if o.Deployment == nil || replicasOf(o.Deployment) <= 1 || o.SharedSessions || len(o.Invalid) > 0 ||
		spec.Transport == v1beta1.TransportStdio || spec.Replicas != nil && *spec.Replicas > 1 {
		return nil
	}
	return []status.Finding{{
		Condition: v1beta1.ConditionSessionStorageWarning, Status: metav1.ConditionTrue,
		Reason:  v1beta1.ReasonSessionStorageMissingForReplicas,
		Message: "The proxy's Deployment is scaled to several pods, but they share no session store; set spec.sessionStorage to redis.",
	}}
}
