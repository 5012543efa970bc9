// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
)

// shard makes an operator work for the MCPServers of one value of a label.
func shard(name string) func(*Config) {
	return func(c *Config) {
		c.Selector = labels.SelectorFromSet(labels.Set{"shard": name})
		c.Options.RunnerImage = "example.com/runner:" + name
	}
}

func (s *apiServer) moveTo(server, shard string) {
	s.t.Helper()
	change(s, server, func(server *v1beta1.MCPServer) { server.Labels = map[string]string{"shard": shard} })
}

// another returns the same API server as another operator sees it, with the writes of that one alone.
func (s *apiServer) another() *apiServer {
	s.t.Helper()
	other := &apiServer{t: s.t, api: s.api}
	other.connect("another")
	return other
}

// An operator with a selector works for the MCPServers that it selects, and for others neither at first nor when their children
// change. One that leaves is left as it is; one that comes back is taken up where it is.
func TestAnOperatorWorksForTheMCPServersItSelects(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, shard("a"), func(t *testing.T, o *operating) {
		o.expect(nil, "another one's MCPServer")
		o.requested()
		o.moveTo("web", "a")
		o.rest()
		o.becomeReady("web")
		o.took()
		if asked := o.reads(); len(asked) > 4 {
			t.Errorf("a new MCPServer cost the questions %v, want 4 at most", asked)
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Env = []v1beta1.EnvVar{{Name: "A", Value: "b"}} })
		o.rest()
		o.took()
		if diff := cmp.Diff([]string{"list mcpservers"}, o.reads()); diff != "" {
			t.Errorf("the questions before an edit (-want +got):\n%s", diff)
		}

		o.moveTo("web", "b")
		o.rest()
		o.requested()
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:2" })
		change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "example.com/other:1" })
		remove[*corev1.Service](o.apiServer, "mcp-web")
		o.rest()
		o.expect(nil, "it has left")
		if reads := o.reads(); len(reads) > 0 {
			t.Errorf("it has left, and cost %v", reads)
		}

		o.moveTo("web", "a")
		o.rest()
		writes := strings.Join(o.took(), "\n")
		for _, want := range []string{"Service/mcp-web", "StatefulSet/web"} {
			if !strings.Contains(writes, want) {
				t.Errorf("%s was not written when it came back: %s", want, writes)
			}
		}
	})
}

// An operator that sees what its successor has written, but not yet why, does not answer it.
func TestAnOperatorDoesNotAnswerItsSuccessor(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, shard("a"), func(t *testing.T, o *operating) {
		o.moveTo("web", "a")
		o.rest()
		o.becomeReady("web")
		var answers atomic.Int32
		o.before.set(func(w write) error {
			if w.kind == "Deployment" && answers.Add(1) > 10 { // Two that answer each other would go on for ever.
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("this goes on for too long"))
			}
			return nil
		})
		for _, late := range []string{"at first", "again"} {
			o.hold("mcpservers", true)
			o.took()
			o.requested()
			o.moveTo("web", "b")
			successor := start(t, o.another(), shard("b"))
			o.rest()
			o.tempt()
			if writes := successor.took(); !slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "Deployment/web") }) {
				t.Errorf("%s: the successor has not written the Deployment: %v", late, writes)
			}
			o.expect(nil, late+": the successor is at work")
			if reads := o.reads(); len(reads) == 0 {
				t.Errorf("%s: the operator has not noticed the other one: the test is about nothing", late)
			}
			o.hold("mcpservers", false)
			o.rest()
			o.expect(nil, late+": it has seen that it moved")
			successor.end()
			o.moveTo("web", "a")
			o.rest()
			if writes := o.took(); !slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "Deployment/web") }) {
				t.Errorf("%s: it is back, and the Deployment was not written: %v", late, writes)
			}
			o.rest()
			o.took()
		}
	})
}

// That the API server does not list the MCPServer is reported as what it is, and not as another client's doing.
func TestAnMCPServerThatCannotBeListedIsReportedAsSuch(t *testing.T) {
	for reason, answer := range map[string]error{
		v1beta1.ReasonForbidden: apierrors.NewForbidden(schema.GroupResource{Resource: "mcpservers"}, "", errors.New("not now")),
		v1beta1.ReasonRetrying:  apierrors.NewServiceUnavailable("not now"),
	} {
		t.Run(reason, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, shard("a"), func(t *testing.T, o *operating) {
				o.moveTo("web", "a")
				o.rest()
				o.becomeReady("web")
				o.onReads("mcpservers", func() error { return answer })
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
					server.Generation++
					server.Spec.Image = "example.com/mcp:2"
				})
				remove[*corev1.Service](o.apiServer, "mcp-web")
				<-time.After(time.Minute)
				o.rest()
				o.expectCondition("it cannot be listed", v1beta1.ConditionApplied, metav1.ConditionFalse, reason)
				o.onReads("mcpservers", func() error { return nil })
				<-time.After(2 * apply.LongestWait)
				o.rest()
				o.expectCondition("it can be listed", v1beta1.ConditionApplied, metav1.ConditionTrue, v1beta1.ReasonApplied)
				if image := o.backendImage(); image != "example.com/mcp:2" {
					t.Errorf("the image is %s at last", image)
				}
			})
		})
	}
}

// tempt lets refusals pass, and gives the operator reasons to look at the Deployment again.
func (o *operating) tempt() {
	o.t.Helper()
	for range 3 {
		change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Labels["foreign"] = d.ResourceVersion })
		o.rest()
	}
}

// With a selector, what MCPServers refer to is left to another operator unless the user says so.
func TestAShardLeavesConfigsToAnotherOperator(t *testing.T) {
	for mode, want := range map[configcontroller.ConfigsMode]configcontroller.ConfigsMode{"": configcontroller.ConfigsToolHive, configcontroller.ConfigsAuto: configcontroller.ConfigsToolHive, configcontroller.ConfigsFreehold: configcontroller.ConfigsFreehold} {
		s := newAPIServer(t)
		c, err := New(Config{Core: s.core, Servers: s.servers, Configs: mode, Selector: labels.Nothing()})
		if err != nil {
			t.Fatal(err)
		}
		if c.config.Configs != want {
			t.Errorf("%q becomes %q, want %q", mode, c.config.Configs, want)
		}
		c.queue.ShutDown()
		c.configurations.Queue.ShutDown()
	}
}
