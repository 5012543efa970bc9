// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// TestWhatAnOlderRunnerEnforcesLessIsReported: an MCPServer is rendered with a proxyrunner that is too old to enforce all that it asks
// for, and the condition about what asks for it says what leaks and which image does not.
func TestWhatAnOlderRunnerEnforcesLessIsReported(t *testing.T) {
	const tools, policies, inline, webhooks = v1beta1.ConditionToolConfigRefValidated, v1beta1.ConditionAuthzConfigRefValidated,
		v1beta1.ConditionAuthzConfigValidated, v1beta1.ConditionWebhookConfigValidated
	all := func(*Input) {}
	ignoring := func(policy v1beta1.WebhookFailurePolicy) func(*Input) {
		return func(in *Input) {
			for _, list := range [][]v1beta1.WebhookSpec{configs.WebhookConfigRef.In(in.References.Objects).Spec.Validating, configs.WebhookConfigRef.In(in.References.Objects).Spec.Mutating} {
				for i := range list {
					list[i].FailurePolicy = policy
				}
			}
		}
	}
	for name, c := range map[string]struct {
		image  string
		change func(*Input)
		// want is what the conditions say, by their types.
		want map[string][]string
	}{
		"the default":       {"", ignoring(v1beta1.WebhookFailurePolicyIgnore), nil},
		"a newer one":       {"runner:v0.64.0", ignoring(v1beta1.WebhookFailurePolicyIgnore), nil},
		"a tag without one": {"runner:mine", ignoring(v1beta1.WebhookFailurePolicyIgnore), nil},
		"the release before": {"runner:v0.62.0", ignoring(v1beta1.WebhookFailurePolicyIgnore), map[string][]string{
			tools: {"before v0.63.0 pass on a list of tools"}, policies: {"before v0.63.0 pass on a compressed list"}, webhooks: {"before v0.63.0 allow a call without asking"},
		}},
		"webhooks that must answer": {"runner:v0.62.0", ignoring(v1beta1.WebhookFailurePolicyFail), map[string][]string{tools: nil, policies: nil}},
		"one that lets completions through": {"runner:v0.47.0", ignoring(""), map[string][]string{
			tools: nil, policies: {"before v0.55.1 allow every completion", "before v0.63.0"},
		}},
		"the oldest": {"runner:v0.44.0", all, map[string][]string{
			tools: {"before v0.47.0", "before v0.63.0"}, policies: {"before v0.47.0", "status than 2xx", "before v0.55.1", "before v0.63.0"},
			webhooks: {"before v0.47.0 do not ask"},
		}},
		"tools that are only renamed": {"runner:v0.62.0", func(in *Input) {
			ignoring(v1beta1.WebhookFailurePolicyFail)(in)
			configs.ToolConfigRef.In(in.References.Objects).Spec.ToolsFilter = nil
		}, map[string][]string{policies: nil}},
		"inline policies": {"runner:v0.62.0", func(in *Input) {
			in.References = References{}
			in.Server = newServer()
			in.Server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: v1beta1.AuthzConfigTypeInline, Inline: &v1beta1.InlineAuthzConfig{
				Policies: []string{"permit(principal, action, resource);"},
			}}
		}, map[string][]string{inline: {"before v0.63.0 pass on a compressed list"}}},
		"nothing asked for": {"runner:v0.44.0", func(in *Input) { *in = Input{Server: newServer()} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			ignoring(v1beta1.WebhookFailurePolicyFail)(&in)
			c.change(&in)
			result := mustRender(t, in, Options{RunnerImage: c.image})
			if len(result.Held) > 0 {
				t.Fatalf("held: %+v", result.Held)
			}
			found := map[string]bool{}
			for _, notice := range result.Notices {
				if notice.Reason != v1beta1.ReasonRunnerEnforcesLess {
					continue
				}
				if found[notice.Condition] {
					t.Errorf("%s is reported twice", notice.Condition)
				}
				found[notice.Condition] = true
				want, expected := c.want[notice.Condition]
				if !expected {
					t.Errorf("%s: %s", notice.Condition, notice.Message)
				}
				for _, part := range append(slices.Clone(want), c.image, "--runner-image="+DefaultRunnerImage) {
					if !strings.Contains(notice.Message, part) {
						t.Errorf("%s does not say %q: %s", notice.Condition, part, notice.Message)
					}
				}
				if strings.Count(notice.Message, "those before") != max(1, len(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return !strings.HasPrefix(s, "before") }))) {
					t.Errorf("%s says another number of things: %s", notice.Condition, notice.Message)
				}
			}
			if len(found) != len(c.want) {
				t.Errorf("reported are %v, want %v", found, c.want)
			}
			for _, notice := range result.Notices {
				if found[notice.Condition] && notice.Reason != v1beta1.ReasonRunnerEnforcesLess {
					t.Errorf("%s has the reason %s as well", notice.Condition, notice.Reason)
				}
			}
		})
	}
}

// TestReferencesThatCannotBeUsedSayThatAlone: a reference that keeps the proxy from being written is not also reported as enforced in part.
func TestReferencesThatCannotBeUsedSayThatAlone(t *testing.T) {
	in := wholeReferences()
	configs.ToolConfigRef.In(in.References.Objects).Spec.ToolsFilter = []string{"a,b"}
	result := mustRender(t, in, Options{RunnerImage: "runner:v0.62.0"})
	for _, notice := range result.Notices {
		if notice.Condition == v1beta1.ConditionToolConfigRefValidated {
			t.Errorf("got the notice %+v beside %+v", notice, result.Held)
		}
	}
	if len(result.Held) != 1 {
		t.Errorf("held are %+v, want the one reference", result.Held)
	}
}
