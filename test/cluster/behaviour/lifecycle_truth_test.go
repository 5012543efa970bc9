// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// truth is what an MCPServer says of itself in brief.
type truth struct {
	phase v1beta1.MCPServerPhase
	// message is a part of it.
	message string
	// reason is that of the condition that is True: Stalled of Failed, Reconciling of Pending, Ready of Ready; empty for Stopped.
	reason string
	// noURL is set where clients are to be told none.
	noURL bool
}

// missing returns what of a truth a status does not say.
func (want truth) missing(server *v1beta1.MCPServer) error {
	s := &server.Status
	if s.ObservedGeneration != server.Generation || s.Phase != want.phase || !strings.Contains(s.Message, want.message) || (s.URL == "") != want.noURL {
		return fmt.Errorf("generation %d of %d is %s, URL %q: %s", s.ObservedGeneration, server.Generation, s.Phase, s.URL, s.Message)
	}
	for condition, of := range map[string]v1beta1.MCPServerPhase{
		v1beta1.ConditionReady: v1beta1.PhaseReady, v1beta1.ConditionReconciling: v1beta1.PhasePending, v1beta1.ConditionStalled: v1beta1.PhaseFailed,
	} {
		c := meta.FindStatusCondition(s.Conditions, condition)
		if want.phase == v1beta1.PhaseStopped && condition == v1beta1.ConditionReady {
			if c != nil {
				return fmt.Errorf("it is stopped, and has the condition %+v", *c)
			}
			continue
		}
		if c != nil && c.Reason == "Pinned" {
			continue
		}
		if c == nil || (c.Status == metav1.ConditionTrue) != (of == want.phase) || of == want.phase && c.Reason != want.reason {
			return fmt.Errorf("it is %s, and %s is %+v", want.phase, condition, c)
		}
	}
	return nil
}

// pinnedReady is an MCPServer of which another client says that it is ready, whatever it is.
const pinnedReady = `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "pinned", "namespace": %q}, "status": {
	"conditions": [{"type": "Ready", "status": "True", "reason": "Pinned", "message": "x", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}`

var itServes = truth{v1beta1.PhaseReady, "MCP server is running", "Ready", false}

// TestPhaseConditionsMessageAndURLAreOneTruth disturbs MCPServers that serve, each in a way in which one of these said otherwise once, and
// ends the disturbance.
func TestPhaseConditionsMessageAndURLAreOneTruth(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	kubectl := ns.Kubectl(t)
	run := func(args ...string) func(t *testing.T) {
		return func(t *testing.T) { t.Helper(); kubectl.Run(t, args...) }
	}
	for name, test := range map[string]struct {
		change  harness.Change
		disturb []func(t *testing.T)
		want    truth
		// says is a condition that says more, and end ends the disturbance.
		says harness.Expectation
		end  []func(t *testing.T)
	}{
		"external": {
			disturb: []func(t *testing.T){run("patch", "service", "mcp-external-proxy", "--type=merge", "-p", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`)},
			want:    truth{v1beta1.PhaseFailed, "MCP server cannot be reached: the type of its Service is ExternalName", "ServiceLeadsElsewhere", true},
			end:     []func(t *testing.T){run("patch", "service", "mcp-external-proxy", "--type=merge", "-p", `{"spec":{"type":"ClusterIP","externalName":null}}`)},
		},
		"narrow": {
			disturb: []func(t *testing.T){run("patch", "service", "mcp-narrow-proxy", "--type=merge", "-p", `{"spec":{"selector":{"team":"other"}}}`)},
			want:    truth{v1beta1.PhaseFailed, "Some of the desired state is not written; see the condition FieldsOwned", "FieldManagerConflict", true},
			end:     []func(t *testing.T){run("patch", "service", "mcp-narrow-proxy", "--type=merge", "-p", `{"spec":{"selector":{"team":null}}}`)},
		},
		"none": {
			disturb: []func(t *testing.T){run("scale", "statefulset/none", "--replicas=0")},
			want:    truth{v1beta1.PhaseStopped, "MCP server is stopped (scaled to zero)", "", false},
			end:     []func(t *testing.T){run("scale", "statefulset/none", "--replicas=1")},
		},
		"undo": {
			change: func(server *v1beta1.MCPServer) {
				harness.InlineAuthorization(server)
				server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
					ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{Env: []v1beta1.EnvVar{{Name: "EARLIER", Value: "yes"}}},
				}
			},
			disturb: []func(t *testing.T){
				func(t *testing.T) {
					ns.Edit(t, "undo", func(server *v1beta1.MCPServer) {
						server.Spec.AuthzConfig.Inline.Policies, server.Spec.ResourceOverrides = []string{`forbid(principal, action, resource);`}, nil
					})
					ns.AwaitServer(t, "undo", "runs", itServes.missing)
				},
				run("rollout", "undo", "deployment/undo"),
			},
			want: truth{v1beta1.PhaseFailed, "Some of the desired state is not written; see the condition FieldsOwned", "FieldManagerConflict", false},
			says: harness.Expectation{Condition: v1beta1.ConditionAuthzConfigValidated, Status: metav1.ConditionFalse, Reason: "ConfigNotEnforced", Message: []string{"generation"}},
			end: []func(t *testing.T){
				run("annotate", "mcpserver", "undo", v1beta1.AnnotationTake+"=kubectl"),
				func(t *testing.T) {
					// The variable that the undo has brought back is kubectl's alone, so it stays.
					const kept = `which keeps what it alone has set there: .spec.template.spec.containers[name="toolhive"].env[name="EARLIER"].value`
					harness.Eventually(t, "an event names what stays", func(context.Context) error {
						told := kubectl.Run(t, "get", "events", "--field-selector=reason=FieldsTaken,involvedObject.name=undo", "-o", "jsonpath={.items[*].message}")
						if !strings.Contains(told, kept) {
							return fmt.Errorf("the events say %s", told)
						}
						return nil
					})
				},
			},
		},
		"pinned": {
			disturb: []func(t *testing.T){
				func(t *testing.T) {
					kubectl.Do(t, harness.Call{
						Args:  []string{"apply", "--server-side", "--subresource=status", "--field-manager=pin", "--force-conflicts", "-f", "-"},
						Input: fmt.Sprintf(pinnedReady, ns.Name),
					})
				},
				run("patch", "service", "mcp-pinned-proxy", "--type=merge", "-p", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`),
			},
			want: truth{v1beta1.PhaseFailed, "MCP server cannot be reached: the type of its Service is ExternalName", "ServiceLeadsElsewhere", true},
			says: harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict", Message: []string{`"pin"`}},
		},
		"held": {
			disturb: []func(t *testing.T){
				run("patch", "mcpserver", "held", "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]`),
				run("delete", "mcpserver", "held", "--wait=false"),
			},
			want: truth{v1beta1.PhaseTerminating, "stays until others remove their finalizers: example.com/hold", "", false},
		},
	} {
		server := harness.HTTPServer(name)
		if test.change != nil {
			test.change(server)
		}
		ns.Create(t, server)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitServer(t, name, "runs", itServes.missing)
			for _, disturb := range test.disturb {
				disturb(t)
			}
			check := test.want.missing
			if test.want.phase == v1beta1.PhaseTerminating {
				check = func(server *v1beta1.MCPServer) error {
					if s := server.Status; s.Phase != test.want.phase || !strings.Contains(s.Message, test.want.message) {
						return fmt.Errorf("it is %s: %s", s.Phase, s.Message)
					}
					return nil
				}
			}
			ns.AwaitServer(t, name, "tells the truth", check)
			if test.says.Condition != "" {
				ns.AwaitStatus(t, name, test.says)
			}
			for _, end := range test.end {
				end(t)
			}
			if test.end != nil {
				ns.AwaitServer(t, name, "runs again", itServes.missing)
			}
		})
	}
}

// TestAnMCPServerThatIsToHaveNoPodsIsDoneFromTheStart creates MCPServers without pods. No pod is ever made, and the status
// says that they are stopped.
func TestAnMCPServerThatIsToHaveNoPodsIsDoneFromTheStart(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	mark := ns.Mark(t)
	for _, transport := range []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio} {
		name := "none-" + string(transport)
		ns.Create(t, harness.Server(name, transport, harness.Replicas(0, 0)))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitServer(t, name, "is stopped", truth{v1beta1.PhaseStopped, "MCP server is stopped (scaled to zero)", "", true}.missing)
			ns.AwaitReplicas(t, harness.Proxy, name, 0, managers.ProxyReplicas)
			ns.AwaitReplicas(t, harness.Backend, name, 0, managers.BackendReplicas)
			ns.AwaitCalm(t, name)
			sets, err := ns.Core.AppsV1().ReplicaSets(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: v1beta1.LabelToolHiveName + "=" + name})
			if err != nil || len(sets.Items) != 1 {
				t.Fatalf("%d ReplicaSets, want 1: %v", len(sets.Items), err)
			}
			// The generation of a Deployment counts changes of annotations as well.
			if backend := ns.MustObject(t, harness.Backend, name); backend.GetGeneration() != 1 || sets.Items[0].Generation != 1 {
				t.Errorf("the backend has the generation %d, and the proxies %d: they were made with another number", backend.GetGeneration(), sets.Items[0].Generation)
			}
			var statuses []string
			for _, write := range ns.Writes(t, mark) {
				if write.Name == name && write.Subresource == "status" {
					statuses = append(statuses, string(write.Body))
				}
			}
			if len(statuses) > 2 { // The second one ends a lost race.
				t.Errorf("%d writes of the status, want 2 at most:\n%s", len(statuses), strings.Join(statuses, "\n"))
			}
			ns.Edit(t, name, harness.Replicas(1, 1))
			ns.AwaitServer(t, name, "runs", itServes.missing)
		})
	}
}

// TestAReferenceThatComesLaterDoesNotFlashStalled has MCPServers whose configuration comes some seconds after them, or never. Tools such as
// Flux give up at the first sign of failure.
func TestAReferenceThatComesLaterDoesNotFlashStalled(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	history := ns.Record(t, harness.FormOf(harness.ServerItself).Resource)
	for _, name := range []string{"later", "never"} {
		ns.Create(t, harness.HTTPServer(name, func(server *v1beta1.MCPServer) {
			server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: name, Audience: "a"}
		}))
	}
	waits := truth{v1beta1.PhasePending, "MCP server is waiting for what it refers to: ", "OIDCConfigRefNotFound", true}
	ns.AwaitServer(t, "later", "waits for its configuration", waits.missing)
	ns.Kubectl(t).Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPOIDCConfig",
		"metadata": {"name": "later"}, "spec": {"type": "inline", "inline": {"issuer": "https://idp.example.com", "jwksUrl": "https://idp.example.com/jwks"}}}`})
	ns.AwaitServer(t, "later", "runs", itServes.missing)
	ns.AwaitServer(t, "never", "is failed", truth{v1beta1.PhaseFailed, "Failed to build configuration: ", "OIDCConfigRefNotFound", true}.missing)
	for _, version := range harness.Named("later", history.Complete(t)) {
		if phase, _, _ := unstructured.NestedString(version.Object, "status", "phase"); phase == "Failed" {
			t.Error("it said that it has failed before its configuration came")
		}
	}
}
