// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Whoever waits for the rollouts of one object says which ones these are, and goes on at once when another object changes that nobody is
// rolled out for: a policy never waits behind what somebody else's configuration has others do.
func TestAChangeOfOneObjectWaitsForNoOther(t *testing.T) {
	tools := &v1beta1.MCPToolConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "shop", Generation: 1}, Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"a"}},
	}
	names := []string{"a", "b"}
	objects := []runtime.Object{issuer("https://idp.example.com"), tools}
	for _, name := range names {
		server := authenticated(name)
		server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "theirs"}
		objects = append(objects, server)
	}
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		for _, name := range names {
			o.becomeReady(name)
		}
		change(o.apiServer, "theirs", func(c *v1beta1.MCPToolConfig) { c.Generation, c.Spec.ToolsFilter = 2, []string{"b"} })
		o.rest()
		waiting := o.waitingForTurn(names...)
		if len(waiting) != 1 {
			t.Fatalf("%v wait", waiting)
		}
		stuck := names[(slices.Index(names, waiting[0])+1)%len(names)]
		_, _, message := o.condition(waiting[0], v1beta1.ConditionApplied)
		if want := "mcptoolconfig/theirs has changed."; !strings.HasPrefix(message, want) || !strings.Contains(message, " "+stuck+" under way") {
			t.Errorf("%s\nwant %s, and that %s is under way", message, want, stuck)
		}
		o.changeIssuer(2, "https://new.example.com")
		if !strings.Contains(o.read(waiting[0]), "https://new.example.com") || len(o.waitingForTurn(names...)) > 0 {
			t.Error("the new issuer waits behind the rollout of somebody else's tools")
		}
	})
}

// A proxy that does not serve has nothing to lose: it gets what has changed at once, and keeps nobody from a turn.
func TestAProxyThatDoesNotServeTakesNoTurn(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, names []string) {
		for _, name := range names[:2] {
			change(o.apiServer, name, func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		}
		o.rest()
		o.changeIssuer(2, "https://new.example.com")
		for _, name := range names {
			if !strings.Contains(o.read(name), "https://new.example.com") {
				t.Errorf("%s waits, and %v wait for a turn", name, o.waitingForTurn(names...))
			}
		}
		if o.configRollouts.Holds(key(names[0])) || !o.configRollouts.Holds(key(names[2])) {
			t.Error("one that does not serve has a turn, or one that serves has none")
		}
	})
}

// A request that takes as long as a webhook may, or two that take nearly as long, end what a pass writes: another MCPServer is next, though
// there is one worker.
func TestAPassThatTakesLongMakesRoomForOthers(t *testing.T) {
	for name, test := range map[string]struct {
		takes, most time.Duration
		fails       bool
	}{
		"time-outs":    {takes: 10 * time.Second, most: 11 * time.Second, fails: true},
		"slow answers": {takes: 8 * time.Second, most: 17 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, func(c *Config) { c.Workers = 1 }, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.before.set(func(w write) error {
					if !strings.Contains(w.name, "slow") {
						return nil
					}
					<-time.After(test.takes)
					if test.fails {
						return apierrors.NewInternalError(errors.New("failed calling webhook"))
					}
					return nil
				})
				o.add(newServer("slow"))
				synctest.Wait() // The worker is with it.
				begun := time.Now()
				change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Generation, s.Spec.Image = 2, "example.com/mcp:2" })
				for o.backendImage() != "example.com/mcp:2" {
					<-time.After(time.Second)
				}
				if waited := time.Since(begun); waited > test.most {
					t.Errorf("an edit waited for %v", waited)
				}
				o.before.set(nil)
				<-time.After(time.Minute)
				o.becomeReady("slow")
			})
		})
	}
}
