// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// The MCPServers with which something is the matter, beside those of harness.Fleet and of deploy/samples.
const (
	// contested has a label of its Deployment set by hand, and contestedPods its number of proxies.
	contested, contestedPods = "contested", "contested-pods"
	// taken had a label set by hand that was taken back, as an annotation still asks for.
	taken = "taken"
	// yielded leaves a field to somebody who has set it.
	yielded = "yielded"
	// scaled names no number of proxies, and somebody else has set one.
	scaled = "scaled"
	// pair has two pods of each tier, and lone has one proxy that talks to one backend.
	pair, lone = "pair", "lone"
	// held refers to something that is not there.
	held = "held"
	// invalid had a good spec and has one that cannot be rendered.
	invalid = "invalid"
)

// fleet is how many MCPServers there are of harness.Fleet: one for each feature that it knows.
const fleet = 11

// label is one of the Deployment's that Freehold sets.
const label = "app.kubernetes.io/name"

// populate makes MCPServers that together use every field of the spec and every kind that there is to refer to, and lets others write
// to some. It waits until each is as it is going to stay.
func (s *scene) populate(t *testing.T) {
	t.Helper()
	s.kubectl.Run(t, "create", "configmap", "collector-ca", "--from-literal=ca.crt=the authorities of the collector")
	s.kubectl.Run(t, "apply", "--server-side", "-R", "-f", filepath.Join(s.lastRoot(), "deploy", "samples", "scenarios"))
	s.Launch(t, harness.Fleet(fleet))
	for _, server := range []*v1beta1.MCPServer{
		harness.HTTPServer(contested), harness.HTTPServer(contestedPods, harness.Replicas(1, 1)), harness.HTTPServer(taken),
		harness.HTTPServer(yielded, yieldsResources), harness.HTTPServer(scaled),
		harness.ServerWithAllChildren(pair), harness.Server(lone, v1beta1.TransportStdio), harness.HTTPServer(invalid),
		harness.HTTPServer(held, func(server *v1beta1.MCPServer) {
			server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "nowhere", Audience: "nobody"}
		}),
	} {
		if server.Name == pair {
			harness.Replicas(2, 2)(server)
			harness.SharedSessions(server)
		}
		s.Create(t, server)
	}
	for _, name := range []string{contested, contestedPods, taken, yielded, scaled, pair, lone, invalid} {
		s.AwaitSettled(t, name)
	}

	s.kubectl.Run(t, "label", "deployment/"+contested, "--overwrite", "--field-manager=kubectl-edit", label+"=mine")
	s.kubectl.Run(t, "label", "deployment/"+taken, "--overwrite", "--field-manager=kubectl-edit", label+"=mine")
	s.kubectl.Run(t, "scale", "deployment/"+contestedPods, "deployment/"+scaled, "--replicas=2")
	s.kubectl.Run(t, "set", "resources", "deployment/"+yielded, "--containers=toolhive", "--limits=cpu=2")
	s.Edit(t, invalid, func(server *v1beta1.MCPServer) {
		harness.PodTemplate(`{"spec": {"containers": "none"}}`)(server)
	})
	s.expectConflict(t, taken)
	s.kubectl.Run(t, "annotate", "mcpserver", taken, v1beta1.AnnotationTake+"=kubectl-edit")
	s.AwaitNoConflict(t, taken)
	s.expectConflict(t, contested)
	s.expectConflict(t, contestedPods)
	s.AwaitStatus(t, invalid, harness.Expectation{
		Condition: v1beta1.ConditionPodTemplateValid, Status: metav1.ConditionFalse, Reason: "InvalidPodTemplateSpec",
	})
	for _, name := range []string{taken, scaled, pair, lone, yielded} {
		s.AwaitSettled(t, name)
	}
	s.awaitAllReady(t)
}

// yieldsResources lets others set what a proxy may use.
func yieldsResources(server *v1beta1.MCPServer) {
	server.Annotations = map[string]string{
		v1beta1.AnnotationYield: "deployment.apps/" + server.Name + `:.spec.template.spec.containers[name="toolhive"].resources`,
	}
}

// expectConflict waits until an MCPServer reports one.
func (s *scene) expectConflict(t *testing.T, name string) {
	t.Helper()
	s.AwaitStatus(t, name, harness.Expectation{
		Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonFieldManagerConflict,
	})
}

// awaitAllReady waits until each MCPServer that can be Ready is.
func (s *scene) awaitAllReady(t *testing.T) {
	t.Helper()
	harness.EventuallyWithin(t, harness.CrowdTimeout, "the MCPServers are Ready", func(ctx context.Context) error {
		list, err := s.Servers.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			server := &list.Items[i]
			if unready[server.Name] {
				continue
			}
			if err := harness.Fine[0].Missing(server); err != nil {
				return fmt.Errorf("MCPServer %s: %w", server.Name, err)
			}
		}
		return nil
	})
}

// mark is a key that each edit sets on the Service of a proxy: nothing has to restart for it.
const mark = "example.com/round"

// edit edits each MCPServer, and calls a function halfway.
func (s *scene) edit(t *testing.T, round int, halfway func()) {
	t.Helper()
	names := s.names(t)
	for i, name := range names {
		if i == len(names)/2 {
			halfway()
		}
		s.Edit(t, name, func(server *v1beta1.MCPServer) {
			if server.Spec.ResourceOverrides == nil {
				server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{}
			}
			if server.Spec.ResourceOverrides.ProxyService == nil {
				server.Spec.ResourceOverrides.ProxyService = &v1beta1.ResourceMetadataOverrides{}
			}
			annotations := &server.Spec.ResourceOverrides.ProxyService.Annotations
			*annotations = map[string]string{mark: strconv.Itoa(round)}
		})
	}
}

// checkEdits checks that each edit has got through, but for a spec that cannot be rendered and a proxy that is not made.
func (s *scene) checkEdits(t *testing.T, round int) {
	t.Helper()
	for _, name := range s.names(t) {
		if name == invalid {
			continue
		}
		service := s.MustObject(t, harness.ProxyService, name)
		if got := service.GetAnnotations()[mark]; got != strconv.Itoa(round) {
			t.Errorf("round %d: the Service of %s is of round %s", round, name, got)
		}
	}
}

// names are those of the MCPServers.
func (s *scene) names(t *testing.T) (names []string) {
	t.Helper()
	list, err := s.Servers.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// unready are the MCPServers that cannot be Ready.
var unready = map[string]bool{held: true, invalid: true, contested: true, contestedPods: true}
