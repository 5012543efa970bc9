// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// Enforcement is something that an MCPServer can ask for and that older proxyrunners enforce only in part.
type Enforcement struct {
	// Feature is what the MCPServer asks for, in the words of the documentation.
	Feature string
	// Since is the first release of ToolHive whose proxyrunner is known to enforce it whole.
	Since *version.Version
	// Less is what earlier proxyrunners do; it follows "proxyrunners before Since".
	Less string
	// condition returns the type of the condition about what asks for the feature; "" where the MCPServer does not ask for it.
	condition func(*renderer) string
}

// enforcements are in the order of the messages. The modules of some releases could not be had: what changed between v0.50.0 and
// v0.55.1 counts as changed in v0.55.1.
var enforcements = []Enforcement{
	{
		"a tool filter", version.MustParseSemantic("0.47.0"),
		"carry out calls of hidden tools if the request begins with a byte order mark", filtersTools,
	},
	{
		"a tool filter", version.MustParseSemantic("0.63.0"),
		"pass on a list of tools that they cannot read, such as a compressed one, with the hidden tools", filtersTools,
	},
	{
		"authorization", version.MustParseSemantic("0.47.0"),
		"allow every POST to a path that ends in /sse, and do not filter a list whose answer has another status than 2xx", authorizes,
	},
	{"authorization", version.MustParseSemantic("0.55.1"), "allow every completion and every subscription to resources", authorizes},
	{
		"authorization", version.MustParseSemantic("0.63.0"),
		"pass on a compressed list unfiltered", authorizes,
	},
	{
		"webhooks", version.MustParseSemantic("0.47.0"),
		"do not ask them about a POST to a path that ends in /sse, or about a request that begins with a byte order mark",
		func(r *renderer) string { return r.callsWebhook(func(*v1beta1.WebhookSpec) bool { return true }) },
	},
	{
		"webhooks with the failurePolicy ignore", version.MustParseSemantic("0.63.0"),
		"allow a call without asking while they cannot make the request to the webhook, such as without the key for its signature",
		func(r *renderer) string {
			return r.callsWebhook(func(w *v1beta1.WebhookSpec) bool { return w.FailurePolicy == v1beta1.WebhookFailurePolicyIgnore })
		},
	},
}

// Enforcements returns the table of what older proxyrunners enforce only in part.
func Enforcements() []Enforcement { return slices.Clone(enforcements) }

func filtersTools(r *renderer) string {
	_, config := refer(r, configs.ToolConfigRef)
	if config == nil || len(config.Spec.ToolsFilter) == 0 {
		return ""
	}
	return v1beta1.ConditionToolConfigRefValidated
}

func authorizes(r *renderer) string {
	switch spec := &r.server.Spec; {
	case spec.AuthzConfigRef != nil:
		return v1beta1.ConditionAuthzConfigRefValidated
	case spec.AuthzConfig != nil:
		return v1beta1.ConditionAuthzConfigValidated
	default:
		return ""
	}
}

func (r *renderer) callsWebhook(matches func(*v1beta1.WebhookSpec) bool) string {
	_, config := refer(r, configs.WebhookConfigRef)
	if config == nil {
		return ""
	}
	for _, webhooks := range [][]v1beta1.WebhookSpec{config.Spec.Validating, config.Spec.Mutating} {
		for i := range webhooks {
			if matches(&webhooks[i]) {
				return v1beta1.ConditionWebhookConfigValidated
			}
		}
	}
	return ""
}

// noteEnforcement reports what the proxyrunner enforces only in part, in the conditions about what asks for it. It refuses nothing. Of
// a proxyrunner whose version is not known it reports nothing: that is as likely a new one.
func (r *renderer) noteEnforcement() {
	runner, less := r.runner(), map[string][]string{}
	if runner == nil {
		return
	}
	var conditions []string
	for i := range enforcements {
		e := &enforcements[i]
		if condition := e.condition(r); condition != "" && runner.LessThan(e.Since) {
			if len(less[condition]) == 0 {
				conditions = append(conditions, condition)
			}
			less[condition] = append(less[condition], fmt.Sprintf("those before v%s %s", e.Since, e.Less))
		}
	}
	for _, condition := range conditions {
		r.noteLess(condition, fmt.Sprintf("The proxyrunner is %s, and %s. Run the operator with --runner-image=%s, or a newer one.",
			quote(r.runnerImage()), strings.Join(less[condition], "; "), DefaultRunnerImage))
	}
}

// noteLess adds a message to the condition of something that can be used, and gives it the reason RunnerEnforcesLess. A condition
// about what cannot be used stays as it is: the proxy is not written then.
func (r *renderer) noteLess(condition, message string) {
	of := func(p Problem) bool { return p.Condition == condition }
	if slices.ContainsFunc(r.held, of) {
		return
	}
	if i := slices.IndexFunc(r.notices, of); i >= 0 {
		message = r.notices[i].Message + ". " + message
		r.notices = slices.Delete(r.notices, i, i+1)
	}
	r.notice(condition, v1beta1.ReasonRunnerEnforcesLess, "%s", message)
}
