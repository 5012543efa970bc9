// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAPolicyDoesNotWaitForRolloutsOfAnotherObject has rollouts for a tool configuration that many MCPServers share get stuck, since no pod can
// be made. One of those that wait for their turn gets another issuer at once, and before that it says for whom it waits.
func TestAPolicyDoesNotWaitForRolloutsOfAnotherObject(t *testing.T) {
	t.Parallel()
	const count, few = 6, 2
	s := newScene(t)
	tools := s.Env.Servers.ToolhiveV1beta1().MCPToolConfigs(s.Name)
	config := &v1beta1.MCPToolConfig{ObjectMeta: metav1.ObjectMeta{Name: shared}, Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"a"}}}
	config, err := tools.Create(t.Context(), config, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, issuer(address(1)))
	s.Operate(t, foreign, fmt.Sprintf("--config-rollouts-at-once=%d", few))
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("filtered-%d", i))
		s.Create(t, harness.HTTPServer(names[i], authenticated, func(server *v1beta1.MCPServer) {
			server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: shared}
		}))
	}
	s.AwaitAllSettled(t, count, harness.Timeout)
	s.AwaitOperatorRest(t)
	defer s.freezePods(t, len(s.pods(t)))()
	config.Spec.ToolsFilter = []string{"b"}
	if _, err := tools.Update(t.Context(), config, metav1.UpdateOptions{FieldManager: harness.Author}); err != nil {
		t.Fatal(err)
	}
	var stuck, waiting []string
	harness.Eventually(t, "the rollouts begin", func(context.Context) error {
		stuck, waiting = nil, nil
		for _, name := range names {
			if s.deployment(t, name).Generation > 1 {
				stuck = append(stuck, name)
			} else {
				waiting = append(waiting, name)
			}
		}
		if len(stuck) != few {
			return fmt.Errorf("%v have begun", stuck)
		}
		return nil
	})
	server := s.AwaitStatus(t, waiting[0], harness.Expectation{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaitingForTurn,
		Message: []string{"mcptoolconfig/" + shared + " has changed", "under way"},
	})
	told := slices.IndexFunc(server.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionApplied })
	for _, name := range stuck {
		if message := server.Status.Conditions[told].Message; !strings.Contains(message, name) {
			t.Errorf("%s holds a turn, and the condition says %s", name, message)
		}
	}

	began := time.Now()
	s.revise(t, func(config *v1beta1.MCPOIDCConfig) { config.Spec.Inline.Issuer = address(2) })
	// Those that are stuck are being replaced anyway, and two of the others have the turns of the issuer.
	harness.Eventually(t, "the new issuer is rolled out", func(ctx context.Context) error {
		var read []string
		for _, name := range names {
			if document, err := s.read(ctx, name); err == nil && strings.Contains(document, address(2)) {
				read = append(read, name)
			}
		}
		if len(read) != 2*few {
			return fmt.Errorf("%v read it", read)
		}
		return nil
	})
	t.Logf("the new issuer was in the templates of %d MCPServers after %v", 2*few, harness.Since(began))
}
