// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// largeVariable and ordinaryVariable are the environment variables with the numbers of MCPServers that are too large, and of those that
	// are not; lastingVariable is that with the seconds for which the former are edited.
	largeVariable, ordinaryVariable, lastingVariable = "FREEHOLD_LARGE", "FREEHOLD_ORDINARY", "FREEHOLD_LARGE_SECONDS"
)

// TestObjectsThatAreTooLargeDoNotEndTheOperator gives one namespace MCPServers as large as the API server takes them. The operator keeps within
// the memory limit of its manifest, for which a control group sees: when it starts among them, while they change again and again, and when
// it starts anew. They say what is wrong with them, and all others are carried out.
func TestObjectsThatAreTooLargeDoNotEndTheOperator(t *testing.T) {
	harness.Long(t)
	large, ordinary := harness.Count(t, largeVariable, 20), harness.Count(t, ordinaryVariable, 60)
	lasting := time.Duration(harness.Count(t, lastingVariable, 30)) * time.Second
	calm, flooded := newStage(t, env), newStage(t, env)
	// The API server keeps the entries of a list in twenty times the bytes, so most have one long argument.
	entries, text := slices.Repeat([]string{""}, 350000), []string{strings.Repeat("x", 1_300_000)}
	var those, others []*v1beta1.MCPServer
	for i := range large {
		server := harness.HTTPServer(fmt.Sprintf("large-%03d", i))
		if server.Spec.Args = text; i%10 == 0 {
			server.Spec.Args = entries
		}
		those = append(those, server)
	}
	for i := range ordinary {
		others = append(others, harness.HTTPServer(fmt.Sprintf("ordinary-%04d", i)))
	}
	flooded.Launch(t, those)
	calm.Launch(t, others)

	watching := harness.Watching(calm.Name + "," + flooded.Name)
	memory := manifestMemory(t)
	start := func() *harness.LimitedOperator { return calm.LimitedOperator(t, memory, watching, "-v=2") }
	check := func(o *harness.LimitedOperator, when string) {
		t.Helper()
		select {
		case <-o.Done():
			t.Fatalf("the operator has ended %s; it had %d MiB", when, o.Peak(t)>>20)
		default:
			t.Logf("%s: at most %d MiB of %d MiB", when, o.Peak(t)>>20, memory.Limit>>20)
		}
	}
	first := start()
	calm.AwaitAllSettled(t, ordinary, time.Duration(large+ordinary)*3*time.Second)
	tooLarge := harness.Expectation{
		Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonTooLarge,
		Message: []string{"The MCPServer is too large: spec"},
	}
	for _, server := range those {
		flooded.AwaitStatus(t, server.Name, tooLarge)
	}
	check(first, "after its start")

	began, edits := time.Now(), 0
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for ; time.Since(began) < lasting; edits++ {
		<-pace.C
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"edit":"%d"}}}`, edits)
		// etcd, which stores all versions of them, may take longer than the API server waits.
		harness.Eventually(t, "an edit", func(ctx context.Context) error {
			_, err := flooded.Servers.Patch(ctx, those[edits%large].Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: harness.Author})
			return err
		})
		if edits%50 == 0 {
			check(first, fmt.Sprintf("after %d edits", edits))
		}
	}
	calm.Edit(t, others[0].Name, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	calm.AwaitImage(t, others[0].Name, harness.OtherImage)
	check(first, fmt.Sprintf("after %d edits in %v", edits, lasting))
	harness.Stop(t, first.Process)

	second := start()
	calm.Edit(t, others[0].Name, func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:again" })
	calm.AwaitImage(t, others[0].Name, "example.com/mcp:again")
	small := flooded.Edit(t, those[0].Name, func(server *v1beta1.MCPServer) { server.Spec.Args = nil })
	flooded.AwaitStatus(t, small.Name, harness.Fine...)
	check(second, "after another start")
	harness.Eventually(t, "they end", func(ctx context.Context) error {
		return flooded.Servers.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	for _, server := range those {
		flooded.AwaitGone(t, server.Name)
	}
	check(second, "after their deletion")
}

// manifestMemory returns the limits of the operator's Deployment.
func manifestMemory(t *testing.T) (memory harness.Memory) {
	t.Helper()
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal([]byte(deploy.Operator), &deployment); err != nil {
		t.Fatal(err)
	}
	operator := deployment.Spec.Template.Spec.Containers[0]
	memory.Limit = operator.Resources.Limits.Memory().Value()
	for _, variable := range operator.Env {
		if variable.Name == "GOMEMLIMIT" {
			memory.Go = variable.Value
		}
	}
	return memory
}
