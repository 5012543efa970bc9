// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// scenarioCase is a scenario that is played in every run.
type scenarioCase struct {
	transport v1beta1.Transport
	steps     []scenarioStep
	// conflicts is how many conflicts stand, counted each time that the operator has come to rest; transfers is how
	// often it edits managedFields.
	conflicts, transfers int
}

// scenarioCases are scenarios that TestProperty seldom draws, and those that its failures were shrunk to.
var scenarioCases = map[string]scenarioCase{
	"a co-owner holds on when the value changes": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actShare, Field: "backend image", By: harness.Team, Wait: true},
			{Do: actImage, Which: 2, Wait: true},
			{Do: actImage, Which: 0, Wait: true},
			{Do: actImage, Which: 2, Wait: true},
			{Do: actTake, By: harness.Team, Wait: true},
		},
		conflicts: 2, transfers: 1,
	},
	"what is left to others does not follow the spec until it is asked for again": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actYield, Field: "backend image", Wait: true},
			{Do: actImage, Which: 1, Wait: true},
			{Do: actForce, Field: "backend image", By: harness.Team, Which: 1, Wait: true},
			{Do: actReset, Field: "backend image", Wait: true},
			{Do: actSettle, Wait: true},
		},
		// The reset leaves nobody who is known to have set the image. Its value is kept all the same: once it is asked for
		// again, that is a conflict with before-first-apply.
		conflicts: 1, transfers: 2,
	},
	"a scaler takes the number while pods may be many, and loses it when there may be one only": {
		transport: v1beta1.TransportSSE,
		steps: []scenarioStep{
			{Do: actBackends, Which: 1, Wait: true},
			{Do: actScale, Field: "backend replicas", By: "kube-controller-manager", Which: 2, Wait: true},
			{Do: actTransport, Which: 1, Wait: true},
		},
		conflicts: 1, transfers: 1,
	},
	"a number of replicas that is left to others is held at one all the same": {
		transport: v1beta1.TransportStdio,
		steps: []scenarioStep{
			{Do: actReplicas, Which: 1, Wait: true},
			{Do: actYield, Field: "proxy replicas", Wait: true},
			{Do: actScale, Field: "proxy replicas", By: "kubectl", Which: 2, Wait: true},
			{Do: actForce, Field: "proxy replicas", By: harness.Team, Which: 1, Wait: true},
		},
		transfers: 4,
	},
	"a conflict goes with its object": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actForce, Field: "proxy image", By: "argocd-controller", Wait: true},
			{Do: actForce, Field: "affinity", By: "argocd-controller", Wait: true},
			{Do: actDelete, Field: "proxy image"},
			{Do: actDelete, Field: "affinity", Wait: true},
		},
		conflicts: 3,
	},
	"two claims to one field, and one of them given up": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actForce, Field: "proxy grace", By: harness.Team, Wait: true},
			{Do: actShare, Field: "proxy grace", By: "argocd-controller", Wait: true},
			{Do: actGiveUp, Field: "proxy grace", By: harness.Team, Wait: true},
			{Do: actGiveUp, Field: "proxy grace", By: "argocd-controller", Wait: true},
		},
		conflicts: 3,
	},
	"an unset number is released from a conflict": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actReplicas, Which: 2, Wait: true},
			{Do: actScale, Field: "proxy replicas", By: "kubectl", Which: 0, Wait: true},
			{Do: actReplicas, Wait: true},
			{Do: actReplicas, Which: 2, Wait: true},
			{Do: actTake, Field: "proxy replicas", Wait: true},
		},
		conflicts: 2, transfers: 1,
	},
	"proxies that another client made several share no sessions": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actScale, Field: "proxy replicas", By: "kubectl", Which: 1, Wait: true},
		},
	},
	"the API server has taken away what it had filled in for others": {
		transport: v1beta1.TransportSSE,
		steps: []scenarioStep{
			{Do: actSet, Field: "affinity", By: harness.Hand, Which: 0, Wait: true},
			{Do: actSet, Field: "affinity", By: harness.Hand, Which: 1, Wait: true},
			{Do: actForce, Field: "affinity", By: "argocd-controller", Which: 0, Wait: true},
			{Do: actGiveUp, Field: "affinity", By: "argocd-controller", Wait: true},
		},
		conflicts: 2,
	},
	// By the time that the operator made its own, somebody's apply had made the object, and then it was deleted. The refusal
	// was taken for a conflict that stands, and the object was never made again.
	"an object that others made goes before it was seen": {
		transport: v1beta1.TransportStdio,
		steps: []scenarioStep{
			{Do: actDelete, Field: "document"},
			{Do: actMake, Field: "document", By: "argocd-controller", Which: 1},
			{Do: actDelete, Field: "document", Wait: true},
			{Do: actDelete, Field: "document"},
			{Do: actMake, Field: "document", By: "argocd-controller"},
			{Do: actDelete, Field: "document", Wait: true},
		},
	},
	// The Service that only the proxy before the change used is deleted when the conflict that holds up the new proxy is given up.
	"an object goes when the others give up their claims": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actForce, Field: "proxy grace", By: harness.Team, Which: 0, Wait: true},
			{Do: actTransport, Which: 1, Wait: true},
		},
		conflicts: 2,
	},
	"what is atomic is taken as a whole": {
		transport: v1beta1.TransportStreamableHTTP,
		steps: []scenarioStep{
			{Do: actSet, Field: "rules", By: harness.Hand},
			{Do: actForce, Field: "selector", By: harness.Team},
			{Do: actRemove, Field: "document", By: harness.Hand, Wait: true},
			{Do: actTransport, Which: 1, Wait: true},
			{Do: actTransport, Which: 2, Wait: true},
		},
		conflicts: 5,
	},
}

// TestScenarios plays the known scenarios.
func TestScenarios(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	history := recordHistory(t, ns)
	name := scenarioNames()
	for what, c := range scenarioCases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := &scenario{ns: ns, history: history, name: name()}
			if err := s.play(t.Context(), harness.Server(s.name, c.transport), c.steps); err != nil {
				t.Fatalf("MCPServer %s: %v", s.name, err)
			}
			if s.conflicts != c.conflicts || s.transfers != c.transfers {
				t.Errorf("%d conflicts stood, and managedFields were edited %d times; it should be %d and %d",
					s.conflicts, s.transfers, c.conflicts, c.transfers)
			}
		})
	}
}
