// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// TestOracleFindsAStatusThatSaysAppliedWhereOtherValuesAreStored puts other values behind the owners of fields while no operator runs, so
// the status stays as it is.
func TestOracleFindsAStatusThatSaysAppliedWhereOtherValuesAreStored(t *testing.T) {
	tests := map[string]struct {
		change func(d *appsv1.Deployment)
		// waits puts a condition into the status that says something else.
		waits bool
		want  string
	}{
		"as it was sent":              {change: func(*appsv1.Deployment) {}},
		"another value":               {change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, want: `containers[name="toolhive"].image`},
		"a label that is missing":     {change: func(d *appsv1.Deployment) { delete(d.Labels, "app") }, want: ".metadata.labels.app"},
		"owners that are missing":     {change: func(d *appsv1.Deployment) { d.OwnerReferences = nil }, want: ".metadata.ownerReferences"},
		"a longer list":               {change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"a"} }, want: ".args"},
		"what Freehold does not own":  {change: func(d *appsv1.Deployment) { d.Labels["team"] = "shop" }},
		"another value, and it is so": {change: func(d *appsv1.Deployment) { d.Labels["app"] = "other" }, waits: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				s.tamper("apps", "Deployment", "web", func(obj runtime.Object) { test.change(obj.(*appsv1.Deployment)) })
				if test.waits {
					servers := s.Server.KindOf(toolhive, "MCPServer")
					obj, _ := s.Server.Get(servers, s.Namespace, "web")
					server := obj.DeepCopyObject().(*unstructured.Unstructured)
					for _, c := range server.Object["status"].(fields)["conditions"].([]any) {
						if condition := c.(fields); condition["type"] == v1beta1.ConditionApplied {
							condition["reason"] = v1beta1.ReasonAltered
						}
					}
					s.Server.Put(servers, server)
				}
				found := strings.Join(s.oracle.misreported(), "\n")
				if test.want == "" && found != "" || !strings.Contains(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			})
		})
	}
}

// TestOracleFindsAFight: a process writes the same to an object a few times in a minute and no more, and replaces pods a few times in ten.
func TestOracleFindsAFight(t *testing.T) {
	tests := map[string]struct {
		// writes is how often something is written, pause how long after the other, and rolls is set where that replaces pods.
		writes int
		pause  time.Duration
		rolls  bool
		// change is called before each write.
		change func(s *Simulation, r *apiserver.Request)
		want   string
	}{
		"ten restores in a minute": {writes: mostWrites, pause: time.Second},
		"one more":                 {writes: mostWrites + 1, pause: time.Second, want: "12 times within a minute"},
		"with retries of what admission has changed": {writes: mostWrites + alteredWrites, pause: time.Second, change: func(s *Simulation, _ *apiserver.Request) {
			s.policy = &policy{}
		}},
		"one more than with these": {writes: mostWrites + alteredWrites + 1, pause: time.Second, want: "16 times", change: func(s *Simulation, _ *apiserver.Request) {
			s.policy = &policy{}
		}},
		"with waits": {writes: 100, pause: 6 * time.Second},
		"of what is asked for anew": {writes: 100, pause: time.Second, change: func(s *Simulation, r *apiserver.Request) {
			r.Body = []byte(`{"spec":{"paused":` + strings.Repeat("1", 1+s.Steps) + `}}`)
		}},
		"of several processes": {writes: 2 * mostWrites, pause: time.Second, change: func(s *Simulation, r *apiserver.Request) { r.Client = []string{"operator-0", "operator-1"}[s.Steps%2] }},
		"of another version of the object": {writes: mostWrites + 1, change: func(s *Simulation, r *apiserver.Request) {
			r.Body = []byte(`{"metadata":{"resourceVersion":"` + strings.Repeat("1", 1+s.Steps) + `"}}`)
		}, want: "within a minute"},
		"rollouts":            {writes: mostRollouts, pause: 30 * time.Second, rolls: true},
		"one rollout more":    {writes: mostRollouts + 1, pause: 30 * time.Second, rolls: true, want: "the pods were replaced 11 times"},
		"rollouts with waits": {writes: 30, pause: 2 * time.Minute, rolls: true},
		"rollouts for what users ask for in turn": {writes: 30, pause: 30 * time.Second, rolls: true, change: func(s *Simulation, _ *apiserver.Request) { s.oracle.specs++ }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				r := &apiserver.Request{Client: "operator-0", Verb: "apply", Manager: managers.Proxy, Kind: s.Server.KindOf("apps", "Deployment"), Name: "web", Body: []byte(`{}`)}
				before, after := proxyWith(), proxyWith()
				if test.rolls {
					after.Spec.Template.Annotations = map[string]string{"changed": "yes"}
				}
				for range test.writes {
					if test.change != nil {
						test.change(s, r)
					}
					s.Steps++
					s.oracle.checkTempo(r, watch.Modified, after, before)
					s.oracle.answered(r)
					time.Sleep(test.pause)
				}
				found := strings.Join(s.oracle.violations, "\n")
				if test.want == "" && found != "" || !strings.Contains(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			})
		})
	}
}
