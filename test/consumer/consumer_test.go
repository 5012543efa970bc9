// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// policyFields are what the owner of an inline policy owns.
var policyFields = []string{".spec.authzConfig.inline.policies", ".spec.authzConfig.type"}

// conditionFields are the fields of a condition that somebody has applied.
func conditionFields(of string) []string {
	item := fmt.Sprintf(".status.conditions[type=%q]", of)
	return []string{
		item, item + ".lastTransitionTime", item + ".message", item + ".reason", item + ".status", item + ".type",
	}
}

// TestGeneratedClients runs examples/consumer.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	testParts(t, example{
		directory: "consumer", server: "consumed", condition: "consumer.example.com/Attested",
		claims: map[claim][]string{
			applied("consumer-author"): {
				".metadata.labels.app.kubernetes.io/created-by", ".spec.image", ".spec.mcpPort", ".spec.transport",
			},
			applied("consumer-policy"):         policyFields,
			appliedStatus("consumer-attester"): conditionFields("consumer.example.com/Attested"),
		},
		author: applied("consumer-author"),
	})
}

// TestControllerRuntime runs examples/controller-runtime. Its author sends a whole object by POST, and so owns what is
// empty in it and what the API server has defaulted as well.
func TestControllerRuntime(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	author := claim{"runtime-author", metav1.ManagedFieldsOperationUpdate, ""}
	testParts(t, example{
		directory: "controller-runtime", server: "managed", condition: "runtime.example.com/Attested",
		claims: map[claim][]string{
			author: {
				".spec", ".spec.image", ".spec.mcpPort", ".spec.proxyMode", ".spec.proxyPort", ".spec.resources",
				".spec.resources.limits", ".spec.resources.requests", ".spec.sessionAffinity", ".spec.transport",
				".spec.trustProxyHeaders",
			},
			applied("runtime-policy"):         policyFields,
			appliedStatus("runtime-attester"): conditionFields("runtime.example.com/Attested"),
		},
		author: author,
	})
}

// example is a program that plays three parts on an MCPServer: its author, the owner of its policy, and the owner of a
// condition.
type example struct {
	directory, server, condition string
	// claims are those of all three, author that of the first, which is the only one to stay.
	claims map[claim][]string
	author claim
}

// testParts runs an example, and looks at its claims while it is at work and after it has ended.
func testParts(t *testing.T, e example) {
	t.Helper()
	name, condition := e.server, e.condition
	binary := build(t, e.directory)
	ns := env.Namespace(t)
	begin := ns.Mark(t)
	ns.Operate(t)
	p := start(t, ns, binary, "--name="+name)

	p.Await(t, "attested "+name, harness.Timeout)
	// The policy came after the creation, so it is generation 2 that the operator has to follow.
	p.Await(t, "ready at generation 2: http://mcp-"+name+"-proxy."+ns.Name, harness.Timeout)
	server := ns.AwaitSettled(t, name)
	if !meta.IsStatusConditionTrue(server.Status.Conditions, condition) {
		t.Errorf("the condition of the program is not there: %v", server.Status.Conditions)
	}
	checkClaims(t, server, e.claims)
	checkOperatorBeside(t, ns, begin, server, condition)
	if text := fmt.Sprint(ns.MustObject(t, harness.InlineAuthz, name).Object["data"]); !strings.Contains(text, "weather") {
		t.Errorf("the operator has not followed the policy: %s", text)
	}

	interrupt(t, p)
	p.Await(t, "released "+name, harness.Timeout)
	released := ns.AwaitServer(t, name, "is Ready without the policy", func(server *v1beta1.MCPServer) error {
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
	checkClaims(t, released, map[claim][]string{e.author: e.claims[e.author]})
	checkOperatorBeside(t, ns, begin, released, condition)
	// Its ConfigMap stays for the revision of the proxy that the author may go back to.
	proxy := ns.MustObject(t, harness.Proxy, name)
	if volumes := fmt.Sprint(proxy.Object["spec"]); strings.Contains(volumes, "-authz-inline") {
		t.Errorf("the proxy still reads the policy: %s", volumes)
	}
}

// TestGeneratedClientsRefused runs examples/consumer where somebody else owns the policy already: the program says so,
// ends, and leaves that policy as it is.
func TestGeneratedClientsRefused(t *testing.T) {
	t.Parallel()
	const name, other = "contested", "other-policy"
	binary := build(t, "consumer")
	ns := env.Namespace(t)
	theirs := toolhivev1beta1ac.MCPServer(name, ns.Name).WithSpec(toolhivev1beta1ac.MCPServerSpec().
		WithImage("example.com/mcp:1").WithTransport(v1beta1.TransportStreamableHTTP).
		WithAuthzConfig(toolhivev1beta1ac.AuthzConfigRef().WithType(v1beta1.AuthzConfigTypeInline).
			WithInline(toolhivev1beta1ac.InlineAuthzConfig().WithPolicies("forbid(principal, action, resource);"))))
	before, err := ns.Servers.Apply(t.Context(), theirs, metav1.ApplyOptions{FieldManager: other})
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, ns, binary, "--name="+name)
	harness.Await(t, "the program ends", p.Ended)
	if p.Err == nil || !strings.Contains(p.Said(), "somebody else has a say in this") || !strings.Contains(p.Said(), other) {
		t.Errorf("the program has ended with %v", p.Err)
	}
	after, err := ns.Servers.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Spec.AuthzConfig, after.Spec.AuthzConfig); diff != "" {
		t.Errorf("the other's policy (-before +after):\n%s", diff)
	}
	claims := claimsOf(t, before)
	claims[applied("consumer-author")] = []string{
		".metadata.labels.app.kubernetes.io/created-by", ".spec.image", ".spec.mcpPort", ".spec.transport",
	}
	checkClaims(t, after, claims)
}
