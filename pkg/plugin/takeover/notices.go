// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// NoticeUsageMetricsBegin is the reason of the notice that a proxy begins to report usage metrics. No condition has it.
const NoticeUsageMetricsBegin = "UsageMetricsBegin"

// foretell adds notices of what the new proxy does otherwise than the present one, though the spec is the same.
func (p *Plan) foretell(in desired.Input, result *render.Result) {
	i := slices.IndexFunc(p.Objects, func(o Object) bool { return o.Ref == inventory.Proxy.Ref(in.Server.Namespace, in.Server.Name) })
	if i < 0 {
		return
	}
	before, after := desired.TemplateOf(p.Objects[i].Live), desired.TemplateOf(p.Objects[i].Merged)
	if before == nil || after == nil {
		return
	}
	if result.SharedSessions && render.LosesSessions([]*workload.Pod{workload.PodOf(&corev1.Pod{Spec: before.Spec})}, in.Options) {
		p.Notices = append(p.Notices, render.Problem{
			Condition: v1beta1.ConditionSessionStorageWarning, Reason: v1beta1.ReasonSessionsNotKept,
			Message: "The proxyrunner that takes over does not serve the sessions which those before v0.58.0 have begun in Redis; " +
				"clients have to begin new ones.",
		})
	}
	if keepsUsageToItself(in) && !setsUsageMetrics(after) {
		p.Notices = append(p.Notices, render.Problem{
			Reason: NoticeUsageMetricsBegin,
			Message: fmt.Sprintf("ToolHive's operator keeps this proxy from reporting usage metrics to Stacklok; with Freehold it begins to. Start "+
				"Freehold with --usage-metrics=false, or set %s=false in resourceOverrides.proxyDeployment.env.", render.EnvUsageMetrics),
		})
	}
}

// keepsUsageToItself reports whether ToolHive's operator turned usage metrics off: its proxies do what their RunConfig lists, and the
// middleware that reports is not in the list.
func keepsUsageToItself(in desired.Input) bool {
	live := in.Child(inventory.RunConfig.Ref(in.Server.Namespace, in.Server.Name))
	if live == nil {
		return false
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", runconfig.Key)
	var document struct {
		Middlewares []struct {
			Type string `json:"type"`
		} `json:"middleware_configs"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Middlewares) == 0 {
		return false // The proxyrunner makes the list itself, from its own environment, then and afterwards.
	}
	for _, middleware := range document.Middlewares {
		if middleware.Type == "usagemetrics" {
			return false
		}
	}
	return true
}

func setsUsageMetrics(pod *corev1.PodTemplateSpec) bool {
	for i := range pod.Spec.Containers {
		if slices.ContainsFunc(pod.Spec.Containers[i].Env, func(v corev1.EnvVar) bool { return v.Name == render.EnvUsageMetrics }) {
			return true
		}
	}
	return false
}
