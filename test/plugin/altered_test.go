// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// What an admission policy stores otherwise than the operator sends it is shown by every command that shows what differs, and once the
// policy has ended by none.
func TestWhatAdmissionChangesIsShown(t *testing.T) {
	s := newScene(t)
	workloads := admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}}
	lift := s.Mutate(t, workloads, `object.metadata.name == "web"`,
		`[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "example.com/mcp@sha256:1"}]`)
	s.Edit(t, web, harness.Environment("A", "1"))
	s.AwaitStatus(t, web, harness.Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonAltered})

	const says = `.spec.template.spec.containers[name="mcp"].image was sent as "example.com/mcp:1" and is stored as "example.com/mcp@sha256:1"`
	for name, got := range map[string]result{
		"conflicts": must(t, s.Namespace, cmd.ExitFound, "conflicts", known),
		"diff":      must(t, s.Namespace, cmd.ExitFound, "diff", "web", known),
		"status":    do(t, s.Namespace, call{args: []string{"status", "-o", "wide"}}),
	} {
		if !strings.Contains(got.out+got.errOut, says) {
			t.Errorf("%s does not say what is changed:\n%s%s", name, got.out, got.errOut)
		}
	}
	lift()
	s.AwaitStatus(t, web, harness.Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonApplied})
	for _, args := range [][]string{{"conflicts", known}, {"diff", "web", known}} {
		must(t, s.Namespace, cmd.ExitDone, args...)
	}
	if got := do(t, s.Namespace, call{args: []string{"status", "-o", "wide"}}); strings.Contains(got.out, "Altered") {
		t.Errorf("status says\n%s", got.out)
	}
}
