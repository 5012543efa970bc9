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

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// threeOfOneIssuer runs test with three MCPServers that are Ready and refer to one issuer, and with one turn for them.
func threeOfOneIssuer(t *testing.T, test func(t *testing.T, o *operating, names []string)) {
	t.Helper()
	names := []string{"a", "b", "c"}
	objects := []runtime.Object{issuer("https://idp.example.com")}
	for _, name := range names {
		objects = append(objects, authenticated(name))
	}
	operate(t, objects, func(c *Config) { c.ConfigRolloutsAtOnce = 1 }, func(t *testing.T, o *operating) {
		for _, name := range names {
			o.becomeReady(name)
		}
		o.took()
		test(t, o, names)
	})
}

// changeIssuer gives the MCPServers something to roll out, and returns when that is under way.
func (o *operating) changeIssuer(generation int64, address string) {
	change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = generation, address })
	o.rest()
}

// A conflict about something else makes no room for another rollout while the proxy is being replaced, and keeps no slot after it.
func TestAConflictMakesNoRoomForAnotherRollout(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, names []string) {
		for _, name := range names {
			changeAs(o.apiServer, "", "helm", name, func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "evil" })
		}
		o.rest()
		o.changeIssuer(2, "https://new.example.com")
		for len(names) > 1 {
			waiting := o.waitingForTurn(names...)
			if want := len(names) - 1; len(waiting) != want {
				t.Fatalf("%v wait, want %d of them: one proxy is being replaced", waiting, want)
			}
			for _, name := range names {
				if !slices.Contains(waiting, name) {
					proxyReady(o.apiServer, name)
				}
			}
			names = waiting
			o.rest()
		}
	})
}

// MCPServers whose Deployments the API server refuses report that. They neither keep others from their turn nor pass a turn round among
// themselves, and when the refusal is over they are rolled out one after the other.
func TestRefusedRolloutsKeepNoOthersFromTheirTurn(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, names []string) {
		var allowed atomic.Bool
		o.before.set(func(w write) error {
			if !allowed.Load() && w.verb == "apply" && w.kind == "Deployment" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("not now"))
			}
			return nil
		})
		inUse := o.server("a").Status.OIDCConfigHash
		o.changeIssuer(2, "https://new.example.com")
		<-time.After(time.Minute)
		o.took()
		<-time.After(30 * time.Minute)
		counted := map[string]int{}
		for _, w := range o.took() {
			counted[w]++
		}
		for what, times := range counted {
			if strings.Contains(what, "/status") {
				t.Errorf("%d times %s in half an hour in which nothing has changed", times, what)
			}
		}
		for _, name := range names {
			if status, reason, _ := o.condition(name, v1beta1.ConditionApplied); status != metav1.ConditionFalse || reason != v1beta1.ReasonForbidden {
				t.Errorf("%s is %s because of %s, and its Deployment is forbidden", name, status, reason)
			}
			if hash := o.server(name).Status.OIDCConfigHash; hash != inUse || hash == "" {
				t.Errorf("%s reports the issuer with hash %q in use, and its proxy has that with %q", name, hash, inUse)
			}
		}
		allowed.Store(true)
		for left := len(names); left > 0; {
			o.rest()
			left = 0
			var rolling []string
			for _, name := range names {
				d, _ := get[*appsv1.Deployment](o.apiServer, name)
				switch {
				case !strings.Contains(o.read(name), "https://new.example.com"):
					left++
				case d.Status.ObservedGeneration < d.Generation:
					rolling = append(rolling, name)
				}
			}
			if len(rolling) > 1 {
				t.Fatalf("%v are rolled out at once", rolling)
			}
			for _, name := range rolling {
				proxyReady(o.apiServer, name)
			}
		}
	})
}

// A wait after a refused ConfigMap does not begin anew because another proxy had the turn when it was over.
func TestTheWaitForARefusedConfigMapDoesNotBeginAnew(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, _ []string) {
		var attempts, allowed atomic.Int32
		o.before.set(func(w write) error {
			switch {
			case w.verb != "apply" || w.kind != managers.ConfigMap.Kind:
			case !strings.HasPrefix(w.name, "a-"):
				attempts.Add(1)
				return forbidden("configmaps")
			case allowed.Load() == 0:
				return forbidden("configmaps")
			}
			return nil
		})
		o.changeIssuer(2, "https://new.example.com")
		<-time.After(2 * time.Minute)
		allowed.Store(1)
		<-time.After(2 * time.Minute) // The first wait of more than a minute is over, and a has the turn.
		if !strings.Contains(o.read("a"), "https://new.example.com") {
			t.Fatal("a is not replaced")
		}
		<-time.After(5 * time.Minute) // The waits of the others are over, and a has the turn still.
		attempts.Store(0)
		proxyReady(o.apiServer, "a")
		<-time.After(time.Minute)
		if got := attempts.Load(); got != 2 {
			t.Errorf("%d attempts in a minute, want one for each of the others", got)
		}
	})
}

// What an author edits is not held back because an object that the MCPServer refers to has changed earlier, without any effect.
func TestAReferenceThatChangedNothingHoldsBackNoEdit(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, names []string) {
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
			c.Generation, c.Spec.Inline.ProtectedResourceAllowPrivateIP = 2, true // No proxy reads it.
		})
		o.rest()
		o.took()
		for _, name := range names {
			change(o.apiServer, name, func(s *v1beta1.MCPServer) { s.Generation++; s.Spec.OIDCConfigRef.Audience = "other" })
		}
		o.rest()
		if waiting := o.waitingForTurn(names...); len(waiting) > 0 {
			t.Errorf("%v wait for a turn with what their authors have edited", waiting)
		}
	})
}
