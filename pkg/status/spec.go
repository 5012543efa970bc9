// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// specFindings returns the conditions of a spec with which nothing is wrong. What rendering finds overrides them.
func specFindings(o Observation) []Finding {
	spec := &o.Server.Spec
	findings := []Finding{
		{v1beta1.ConditionSpecValid, metav1.ConditionTrue, v1beta1.ReasonValid, "The spec is valid"},
		{
			v1beta1.ConditionStdioReplicaCapped, metav1.ConditionFalse, v1beta1.ReasonStdioReplicaCapNotActive,
			"No replica count is held at 1",
		},
		sessionStorage(o),
		rateLimit(spec),
	}
	if spec.PodTemplateSpec != nil {
		findings = append(findings, Finding{
			v1beta1.ConditionPodTemplateValid, metav1.ConditionTrue,
			v1beta1.ReasonValidPodTemplateSpec, "podTemplateSpec is valid",
		})
	}
	if spec.AuthzConfig != nil {
		findings = append(findings, Finding{
			v1beta1.ConditionAuthzConfigValidated, metav1.ConditionTrue,
			v1beta1.ReasonAuthzConfigValid, "authzConfig is valid",
		})
	}
	return findings
}

func sessionStorage(o Observation) Finding {
	f := Finding{Condition: v1beta1.ConditionSessionStorageWarning, Status: metav1.ConditionFalse}
	switch {
	case o.SharedSessions && o.LosesSessions && o.Proxy.Phase == rollout.Progressing:
		f.Status, f.Reason = metav1.ConditionTrue, v1beta1.ReasonSessionsNotKept
		f.Message = "A proxyrunner takes over that does not serve the sessions which those before v0.58.0 have begun in Redis; " +
			"clients have to begin new ones. While both run, requests of a session fail at the proxies of the other."
	case o.SharedSessions:
		f.Reason, f.Message = v1beta1.ReasonSessionStorageConfigured, "Sessions are kept in Redis"
	default:
		f.Reason, f.Message = v1beta1.ReasonSessionStorageWarningNotApplicable, "One proxy pod needs no shared session store"
	}
	return f
}

func rateLimit(spec *v1beta1.MCPServerSpec) Finding {
	f := Finding{Condition: v1beta1.ConditionRateLimitConfigValid, Status: metav1.ConditionTrue}
	if spec.RateLimiting == nil {
		f.Reason, f.Message = v1beta1.ReasonRateLimitNotApplicable, "rateLimiting is not set"
	} else {
		f.Reason, f.Message = v1beta1.ReasonRateLimitConfigValid, "rateLimiting is valid"
	}
	return f
}

// sorted returns the conditions by type, so that the same findings give the same bytes.
func (s *conditionSet) sorted() []metav1.Condition {
	slices.SortFunc(s.collected, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return s.collected
}
