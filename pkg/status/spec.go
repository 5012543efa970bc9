// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
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

// ForeignPods returns the finding about pods that get a share of an MCPServer's requests and are not its own; none for no pods.
func ForeignPods(pods []*workload.Pod) []Finding {
	if len(pods) == 0 {
		return nil
	}
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return []Finding{{
		v1beta1.ConditionForeignPods, metav1.ConditionTrue, v1beta1.ReasonSelectedByService,
		fmt.Sprintf("These pods have the labels by which the Services of the MCPServer select its pods, so they get a share of its requests: %s. "+
			"They were not made for the MCPServer. Delete them, or remove their label %s", List(names), v1beta1.LabelToolHiveName),
	}}
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

// unshared returns a warning about proxies that do not know each other's sessions, or what the authorization server of another one keeps,
// although the spec asks for one of them at most: another field manager, such as an autoscaler, has set their number. The number itself is
// left out, so that scaling up and down is reported once.
func unshared(o Observation) []Finding {
	spec := &o.Server.Spec
	several := o.Deployment != nil && o.Deployment.Replicas != nil && *o.Deployment.Replicas > 1
	if !several || o.SharedSessions && o.Unshared == "" || len(o.Invalid) > 0 ||
		spec.Transport == v1beta1.TransportStdio || spec.Replicas != nil && *spec.Replicas > 1 {
		return nil
	}
	message, and := "The proxy's Deployment is scaled to several pods,", " and "
	if !o.SharedSessions {
		message, and = message+" but they share no session store; set spec.sessionStorage to redis.", " And "
	}
	if o.Unshared != "" {
		message += and + o.Unshared
	}
	return []Finding{{
		Condition: v1beta1.ConditionSessionStorageWarning, Status: metav1.ConditionTrue,
		Reason: v1beta1.ReasonSessionStorageMissingForReplicas, Message: message,
	}}
}

// unenforced returns the conditions of the references that the proxy does not run with, though they can be used.
func unenforced(o Observation) (findings []Finding) {
	if o.Unenforced == "" || len(o.Refusals) == 0 {
		return nil
	}
	for _, f := range o.Notices {
		for ref := range configs.Hashed() {
			if f.Condition == ref.Condition {
				findings = append(findings, Finding{f.Condition, metav1.ConditionFalse, v1beta1.ReasonConfigNotEnforced, o.Unenforced})
			}
		}
	}
	if o.Server.Spec.AuthzConfig != nil {
		findings = append(findings, Finding{v1beta1.ConditionAuthzConfigValidated, metav1.ConditionFalse, v1beta1.ReasonConfigNotEnforced, o.Unenforced})
	}
	return findings
}

// WithCappings adds to what is reported about the spec the findings about numbers of replicas that other field managers set. What was
// reported before stays until the MCPServer changes: a scaler that tries again and again is reported once.
func WithCappings(server *v1beta1.MCPServer, spec, capped []Finding) []Finding {
	before := ToldCapping(server)
	if len(capped) > 0 || before == nil {
		return append(capped, spec...) // The condition has the reason of the first finding.
	}
	// The earlier report covers what the spec asks for as well.
	others := slices.DeleteFunc(spec, func(f Finding) bool { return f.Condition == before.Type })
	return append(others, Finding{Condition: before.Type, Status: before.Status, Reason: before.Reason, Message: before.Message})
}

// ToldCapping returns the condition that reports who set a number of replicas of the MCPServer as it is now; nil for none.
func ToldCapping(server *v1beta1.MCPServer) *metav1.Condition {
	before := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
	if before == nil || before.Status != metav1.ConditionTrue || before.ObservedGeneration != server.Generation ||
		before.Reason != v1beta1.ReasonStdioReplicasReset {
		return nil
	}
	return before
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
