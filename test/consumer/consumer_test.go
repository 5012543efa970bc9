// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// authored is what the author of the examples' MCPServer owns of it, and governed what the owner of its policy does.
var (
	authored = []string{".metadata.labels.app.kubernetes.io/created-by", ".spec.image", ".spec.mcpPort", ".spec.transport"}
	governed = []string{".spec.authzConfig.inline.policies", ".spec.authzConfig.type"}
)

// conditionFields are the fields of a condition that somebody has applied.
func conditionFields(of string) []string {
	item := fmt.Sprintf(".status.conditions[type=%q]", of)
	return []string{
		item, item + ".lastTransitionTime", item + ".message", item + ".reason", item + ".status", item + ".type",
	}
}

// TestGeneratedClients runs examples/consumer.
func TestGeneratedClients(t *testing.T) {
	const condition, name = "consumer.example.com/Attested", "consumed"
	testParts(t, "consumer", name, condition, applied("consumer-author"), applied("consumer-policy"), appliedStatus("consumer-attester"))
}

// testParts runs an example that plays three parts on an MCPServer: its author, the owner of its policy, and the owner of
// a condition.
func testParts(t *testing.T, example, name, condition string, author, policy, attester claim) {
	binary := build(t, example)
	space := env.Space(t)
	begin := space.Mark(t)
	space.Operate(t)
	p := start(t, space, binary, "--name="+name)

	p.await(t, "attested "+name)
	// The policy came after the creation, so it is generation 2 that the operator has to follow.
	p.await(t, "ready at generation 2: http://mcp-"+name+"-proxy."+space.Name)
	server := space.AwaitSettled(t, name)
	if !meta.IsStatusConditionTrue(server.Status.Conditions, condition) {
		t.Errorf("the condition of the program is not there: %v", server.Status.Conditions)
	}
	checkClaims(t, server, map[claim][]string{author: authored, policy: governed, attester: conditionFields(condition)})
	checkOperatorBeside(t, space, begin, server, condition)
	if text := fmt.Sprint(space.MustObject(t, harness.InlineAuthz, name).Object["data"]); !strings.Contains(text, "weather") {
		t.Errorf("the operator has not followed the policy: %s", text)
	}

	p.interrupt(t)
	p.await(t, "released "+name)
	released := space.AwaitServer(t, name, "is Ready without the policy", func(server *v1beta1.MCPServer) error {
		if server.Generation != 3 || server.Status.ObservedGeneration != 3 {
			return fmt.Errorf("generation %d, observed %d", server.Generation, server.Status.ObservedGeneration)
		}
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			return fmt.Errorf("it is %s", server.Status.Phase)
		}
		return nil
	})
	if released.Spec.AuthzConfig != nil || meta.FindStatusCondition(released.Status.Conditions, condition) != nil {
		t.Errorf("the program has left something behind: %v, %v", released.Spec.AuthzConfig, released.Status.Conditions)
	}
	checkClaims(t, released, map[claim][]string{author: authored})
	checkOperatorBeside(t, space, begin, released, condition)
	harness.Eventually(t, "the end of the policy's ConfigMap", func(ctx context.Context) error {
		_, err := space.Object(ctx, harness.InlineAuthz, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}
