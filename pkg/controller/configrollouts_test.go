// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// A change of what many MCPServers refer to replaces few proxies at a time, each with one RunConfig and one Deployment write. One that
// waits says so, and goes on with what it has; a change that no proxy reads replaces none.
func TestConfigRolloutsArePaced(t *testing.T) {
	names := []string{"a", "b", "c"}
	var objects []runtime.Object
	for _, name := range names {
		objects = append(objects, authenticated(name))
	}
	objects = append(objects, issuer("https://idp.example.com"))
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		for _, name := range names {
			o.becomeReady(name)
		}
		o.took()
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		o.rest()
		for turn := range names {
			var rolled []string
			for _, w := range o.took() {
				if strings.HasPrefix(w, "apply Deployment/") || strings.HasPrefix(w, "apply ConfigMap/") {
					rolled = append(rolled, w)
				}
			}
			if len(rolled) != 2 {
				t.Fatalf("turn %d: writes %v, want a RunConfig and a Deployment", turn, rolled)
			}
			waiting := 0
			for _, name := range names {
				status, reason, _ := o.condition(name, v1beta1.ConditionApplied)
				if status == metav1.ConditionFalse && reason == v1beta1.ReasonWaitingForTurn {
					waiting++
					if strings.Contains(o.read(name), "https://new.example.com") {
						t.Errorf("%s waits, and reads the new issuer", name)
					}
					if ready, _, _ := o.condition(name, v1beta1.ConditionReady); ready != metav1.ConditionFalse {
						t.Errorf("%s waits, and is Ready", name)
					}
				}
			}
			if want := len(names) - turn - 1; waiting != want {
				t.Errorf("turn %d: %d wait, want %d", turn, waiting, want)
			}
			_, name, _ := strings.Cut(strings.Fields(rolled[1])[1], "/")
			proxyReady(o.apiServer, name)
			o.rest()
		}
		o.took()
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
			c.Generation, c.Spec.Inline.ProtectedResourceAllowPrivateIP = 3, true // No proxy reads it.
		})
		o.rest()
		for _, w := range o.took() {
			if strings.Contains(w, "Deployment") || strings.Contains(w, "ConfigMap") {
				t.Errorf("%s for nothing", w)
			}
		}
	})
}

// A change of a Secret's name is in no RunConfig, and replaces the proxy, in its turn.
func TestAChangeOfTheEnvironmentReplacesTheProxyInItsTurn(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
			c.Generation, c.Spec.Inline.ClientSecretRef = 2, &v1beta1.SecretKeyRef{Name: "s", Key: "k"}
		})
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply Deployment/web freehold-proxy") || slices.Contains(got, "apply ConfigMap/web-runconfig freehold-runconfig") {
			t.Errorf("writes %v", got)
		}
		if !o.configRollouts.Holds(cache.NewObjectName("shop", "web")) {
			t.Error("the rollout has no slot")
		}
		proxyReady(o.apiServer, "web")
		o.rest()
		if o.configRollouts.Holds(cache.NewObjectName("shop", "web")) {
			t.Error("the rollout is over and has a slot")
		}
	})
}

// While a proxy waits for its turn to be replaced, neither the backend nor a Service moves away from it.
func TestEndpointStaysWithAQueuedProxy(t *testing.T) {
	var objects []runtime.Object
	for _, name := range []string{"a", "b"} {
		objects = append(objects, authenticated(name))
	}
	objects = append(objects, issuer("https://idp.example.com"))
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		o.becomeReady("a")
		o.becomeReady("b")
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		o.rest()
		o.took()
		rolling, waiting := "a", "b"
		if _, reason, _ := o.condition("a", v1beta1.ConditionApplied); reason == v1beta1.ReasonWaitingForTurn {
			rolling, waiting = "b", "a"
		}
		change(o.apiServer, waiting, func(s *v1beta1.MCPServer) { s.Spec.MCPPort, s.Spec.ProxyPort = 9999, 7777 })
		o.rest()
		for _, w := range o.took() {
			if strings.Contains(w, "StatefulSet") || strings.Contains(w, "Service/") || strings.Contains(w, "Deployment") {
				t.Errorf("%s, and the proxy that waits for its turn does not know the new ports", w)
			}
		}
		proxyReady(o.apiServer, rolling)
		o.rest()
		got := o.took()
		for _, want := range []string{"apply Deployment/" + waiting + " freehold-proxy", "apply StatefulSet/" + waiting + " freehold-backend"} {
			if !slices.Contains(got, want) {
				t.Errorf("writes %v, want %s", got, want)
			}
		}
	})
}

// waitingForTurn returns those MCPServers whose proxies wait for their turn to be replaced.
func (o *operating) waitingForTurn(names ...string) (waiting []string) {
	for _, name := range names {
		if _, reason, _ := o.condition(name, v1beta1.ConditionApplied); reason == v1beta1.ReasonWaitingForTurn {
			waiting = append(waiting, name)
		}
	}
	return waiting
}

// An operator that starts in the middle of rollouts begins no further ones before these are over.
func TestConfigRolloutsGoOnAfterARestart(t *testing.T) {
	names := []string{"a", "b", "c"}
	objects := []runtime.Object{issuer("https://idp.example.com")}
	for _, name := range names {
		objects = append(objects, authenticated(name))
	}
	one := func(c *Config) { c.ConfigRolloutsAtOnce = 1 }
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, objects...)
		first := start(t, s, one)
		first.rest()
		for _, name := range names {
			first.becomeReady(name)
		}
		change(s, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		first.rest()
		waiting := first.waitingForTurn(names...)
		if len(waiting) != 2 {
			t.Fatalf("%v wait", waiting)
		}
		first.end()
		s.took()

		second := start(t, s, one)
		defer second.end()
		second.rest()
		if got := s.took(); len(got) > 0 || !slices.Equal(second.waitingForTurn(names...), waiting) {
			t.Errorf("another operator has written %v, and %v wait", got, second.waitingForTurn(names...))
		}
		rolling := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(waiting, name) })
		proxyReady(s, rolling[0])
		second.rest()
		if left := second.waitingForTurn(names...); len(left) != 1 {
			t.Errorf("%s has been replaced, and %v wait", rolling[0], left)
		}
	})
}

// An MCPServer that is being deleted, and that another finalizer keeps, neither has a turn nor waits for one.
func TestConfigRolloutsPassTheDeletedBy(t *testing.T) {
	names := []string{"a", "b", "c"}
	objects := []runtime.Object{issuer("https://idp.example.com")}
	for _, name := range names {
		server := authenticated(name)
		server.Finalizers = []string{"example.com/keeper"}
		objects = append(objects, server)
	}
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		for _, name := range names {
			o.becomeReady(name)
		}
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		o.rest()
		waiting := o.waitingForTurn(names...)
		if len(waiting) != 2 {
			t.Fatalf("%v wait", waiting)
		}
		rolling := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(waiting, name) })
		for _, name := range []string{waiting[0], rolling[0]} { // One that waits, and then the one that has the turn.
			change(o.apiServer, name, func(s *v1beta1.MCPServer) { s.DeletionTimestamp = new(metav1.Now()) })
			o.rest()
		}
		if left := o.waitingForTurn(waiting[1]); len(left) > 0 {
			t.Errorf("%v waits for %s, which is being deleted", left, rolling[0])
		}
	})
}

// A Deployment that is to have no pods gives its turn away as soon as its controller has seen the template.
func TestARolloutOfNoPodsGivesItsTurnAway(t *testing.T) {
	names := []string{"a", "b"}
	objects := []runtime.Object{issuer("https://idp.example.com")}
	for _, name := range names {
		objects = append(objects, authenticated(name))
	}
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		for _, name := range names {
			o.becomeReady(name)
			change(o.apiServer, name, func(s *v1beta1.MCPServer) { s.Spec.Replicas = new(int32(0)) })
			o.rest()
			scaledToZero(o.apiServer, name)
			o.rest()
		}
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		o.rest()
		for _, name := range names { // The one that waits has no new template to be seen.
			scaledToZero(o.apiServer, name)
		}
		o.rest()
		for _, name := range names {
			if !strings.Contains(o.read(name), "https://new.example.com") {
				t.Errorf("%s waits for a proxy without pods", name)
			}
		}
	})
}

// A rollout keeps its turn for as long as pods go on being replaced, however long all of them take.
func TestARolloutThatTakesLongKeepsItsTurn(t *testing.T) {
	names := []string{"a", "b"}
	objects := []runtime.Object{issuer("https://idp.example.com")}
	for _, name := range names {
		objects = append(objects, authenticated(name))
	}
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		replaced := func(name string, updated int32) {
			t.Helper()
			change(o.apiServer, name, func(d *appsv1.Deployment) {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: updated, ReadyReplicas: 3}
			})
			o.rest()
		}
		for _, name := range names {
			o.becomeReady(name)
			change(o.apiServer, name, func(s *v1beta1.MCPServer) { s.Generation++; s.Spec.Replicas = new(int32(3)) })
			o.rest()
			replaced(name, 3)
		}
		o.changeIssuer(2, "https://new.example.com")
		waiting := o.waitingForTurn(names...)
		if len(waiting) != 1 {
			t.Fatalf("%v wait", waiting)
		}
		rolling := names[(slices.Index(names, waiting[0])+1)%len(names)]
		for updated := range int32(3) {
			if !o.configRollouts.Holds(key(rolling)) || !slices.Equal(o.waitingForTurn(names...), waiting) {
				t.Fatalf("with %d pods replaced %s has its turn: %t, and %v wait", updated, rolling, o.configRollouts.Holds(key(rolling)), o.waitingForTurn(names...))
			}
			<-time.After(6 * time.Minute)
			replaced(rolling, updated+1)
		}
		if left := o.waitingForTurn(names...); len(left) > 0 {
			t.Errorf("all pods are replaced, and %v wait", left)
		}
	})
}

func scaledToZero(s *apiServer, name string) {
	change(s, name, func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation} })
}
