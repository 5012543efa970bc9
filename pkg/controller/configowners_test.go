// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// A new object is left to ToolHive's operator for a while, and is ours when it does not come. The while is short where the caches show
// nothing of ToolHive's.
func TestNewConfigIsLeftForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		seen  bool
		grace time.Duration
	}{"ToolHive is seen": {true, time.Minute}, "ToolHive is not seen": {false, 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				young := newIDP()
				young.CreationTimestamp = metav1.NewTime(bubbleStart)
				s := newAPIServer(t, young, newGroup("team"))
				if c.seen {
					asToolHive(s, "team", "", func(g *v1beta1.MCPGroup) { g.Finalizers = []string{v1beta1.FinalizerGroup} })
				}
				o := start(t, s, keeping)
				defer o.end()
				<-time.After(c.grace - time.Second)
				if owner := ownerOf(o, configs.OIDC); owner != configcontroller.OwnerUndecided || len(o.idp().Finalizers) > 0 {
					t.Errorf("owner %q, finalizers %v within the grace", owner, o.idp().Finalizers)
				}
				<-time.After(2 * time.Second)
				if owner := ownerOf(o, configs.OIDC); owner != configcontroller.OwnerFreehold || o.idp().Status.ObservedGeneration != 1 {
					t.Errorf("owner %q, status %+v after the grace", owner, o.idp().Status)
				}
			})
		})
	}
}

// ownerOf returns which operator writes the one object of a kind.
func ownerOf(o *operating, kind string) configcontroller.ConfigOwner {
	for _, count := range o.Configs() {
		if count.Kind == kind {
			return count.Owner
		}
	}
	return ""
}

// What ToolHive's operator keeps is written in no mode but freehold, and what anybody keeps in none that says so.
func TestConfigsOfToolHiveAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		mode    configcontroller.ConfigsMode
		touched bool
	}{
		"auto": {configcontroller.ConfigsAuto, true}, "toolhive": {configcontroller.ConfigsToolHive, true}, "toolhive, untouched": {configcontroller.ConfigsToolHive, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, newIDP(), newGroup("team"))
				if c.touched {
					keptByToolHive(s)
					asToolHive(s, "team", "", func(g *v1beta1.MCPGroup) { g.Finalizers = []string{v1beta1.FinalizerGroup} })
				}
				o := start(t, s, func(config *Config) { config.Configs = c.mode })
				defer o.end()
				<-time.After(time.Hour)
				change(s, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "nonsense" })
				o.rest()
				if c.touched {
					terminate[*v1beta1.MCPOIDCConfig](s, "idp")
				}
				o.rest()
				checkWrites(t, "of what is ToolHive's", o.tookOn())
				if diff := cmp.Diff([]configcontroller.ConfigCount{{Kind: configs.Group, Owner: configcontroller.OwnerToolHive, Count: 1}, {Kind: configs.OIDC, Owner: configcontroller.OwnerToolHive, Count: 1}}, o.Configs()); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// With --configs=freehold one edit passes what ToolHive's operator holds, and nothing of it is left: the config can be deleted.
func TestConfigIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newIDP())
		keptByToolHive(s)
		o := start(t, s, func(c *Config) { c.Configs = configcontroller.ConfigsFreehold })
		defer o.end()
		o.rest()
		checkWrites(t, "of a takeover", o.tookOn(), "edit MCPOIDCConfig/idp freehold-ownership", oidcStatusWrite)
		live := o.idp()
		if takeover.Held(live, "") || takeover.Held(live, "status") || ownership.ApplyEntry(live, managers.ConfigFinalizer, "") == nil {
			t.Errorf("managedFields %v", live.ManagedFields)
		}
		if live.Status.ConfigHash == "theirs" {
			t.Error("the hash is ToolHive's")
		}
		terminate[*v1beta1.MCPOIDCConfig](s, "idp")
		o.rest()
		if exists[*v1beta1.MCPOIDCConfig](s, "idp") {
			t.Error("the config is still there")
		}
	})
}

// Two operators on one config do not answer each other: ours stops, says so once, and with --configs=freehold begins again when
// ToolHive's has not written for a while.
func TestTwoOperatorsOfAConfigDoNotAnswerEachOther(t *testing.T) {
	for _, mode := range []configcontroller.ConfigsMode{configcontroller.ConfigsAuto, configcontroller.ConfigsFreehold} {
		t.Run(string(mode), func(t *testing.T) {
			operate(t, []runtime.Object{newIDP()}, func(c *Config) { c.Configs = mode }, func(t *testing.T, o *operating) {
				o.took()
				for i := range 500 { // 50 Hz
					asToolHive(o.apiServer, "idp", "status", func(c *v1beta1.MCPOIDCConfig) {
						c.Status.ConfigHash = fmt.Sprint("theirs", i)
						c.Status.Conditions = nil
					})
					<-time.After(20 * time.Millisecond)
				}
				o.rest()
				checkWrites(t, "while both work", o.tookOn())
				told := o.heardOf("idp")
				if len(told) != 1 || !strings.HasPrefix(told[0], "shop/idp Warning FieldManagerConflict Apply: ") || !strings.Contains(told[0], "thv-operator") {
					t.Errorf("events %q", told)
				}
				if n := len(o.Conflicts()); n != 1 {
					t.Errorf("%d conflicts are told", n)
				}
				if diff := cmp.Diff([]configcontroller.ConfigCount{{Kind: configs.OIDC, Owner: configcontroller.OwnerToolHive, Count: 1}}, o.Configs()); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
				<-time.After(time.Hour)
				if mode == configcontroller.ConfigsAuto {
					checkWrites(t, "an hour later", o.tookOn())
					return
				}
				checkWrites(t, "an hour later", o.tookOn(), "edit MCPOIDCConfig/idp freehold-ownership", oidcStatusWrite)
				if n := len(o.Conflicts()); n != 0 || o.idp().Status.ConfigHash == "theirs499" {
					t.Errorf("%d conflicts, status %+v", n, o.idp().Status)
				}
			})
		})
	}
}

// A conflict about a config is over when ToolHive's operator writes what Freehold computes, although Freehold writes nothing.
func TestAConflictAboutAConfigEndsWhenToolHiveAgrees(t *testing.T) {
	operate(t, []runtime.Object{newIDP()}, keeping, func(t *testing.T, o *operating) {
		ours := o.idp().Status
		asToolHive(o.apiServer, "idp", "status", func(c *v1beta1.MCPOIDCConfig) { c.Status.ConfigHash = "theirs" })
		o.rest()
		if n := len(o.Conflicts()); n != 1 {
			t.Fatalf("%d conflicts while the hash differs", n)
		}
		o.took()
		asToolHive(o.apiServer, "idp", "status", func(c *v1beta1.MCPOIDCConfig) { c.Status = ours })
		o.rest()
		if found := o.Conflicts(); len(found) != 0 {
			t.Errorf("conflicts after it is settled: %v", found)
		}
		checkWrites(t, "of a config that is ToolHive's as well", o.tookOn())
	})
}

// Another manager that holds a part of the status at another value is left it; the rest is written, and no request repeats.
func TestTheContestedPartOfAStatusIsLeft(t *testing.T) {
	operate(t, []runtime.Object{newIDP()}, keeping, func(t *testing.T, o *operating) {
		o.took()
		change(o.apiServer, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Status.ConfigHash = "mine" })
		o.rest()
		owned := meta.FindStatusCondition(o.idp().Status.Conditions, v1beta1.ConditionFieldsOwned)
		if owned == nil || owned.Status != metav1.ConditionFalse || owned.Reason != v1beta1.ReasonFieldManagerConflict {
			t.Fatalf("conditions %+v", o.idp().Status.Conditions)
		}
		for _, part := range []string{
			`field manager "somebody" owns .status.configHash of mcpoidcconfig.toolhive.stacklok.dev/idp; freehold-config-status wants`,
			`kubectl patch -n shop mcpoidcconfig.toolhive.stacklok.dev/idp --subresource=status --type=json '--patch=[{"op":"replace","path":"/status","value":{}}]'`,
		} {
			if !strings.Contains(owned.Message, part) {
				t.Errorf("the condition does not say %s: %s", part, owned.Message)
			}
		}
		change(o.apiServer, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "nonsense" })
		<-time.After(time.Hour)
		if is := o.idp().Status; is.ConfigHash != "mine" || !meta.IsStatusConditionFalse(is.Conditions, v1beta1.ConditionValid) {
			t.Errorf("status %+v", is)
		}
		if n := len(o.tookOn()); n > 3 {
			t.Errorf("%d writes", n)
		}
		if n := len(o.Conflicts()); n != 0 { // An invalid spec keeps the hash that is there.
			t.Errorf("%d conflicts", n)
		}
		if c := meta.FindStatusCondition(o.idp().Status.Conditions, v1beta1.ConditionFieldsOwned); c != nil {
			t.Errorf("the condition stays: %+v", c)
		}
		told := o.heardOf("idp")
		if len(told) != 2 || !strings.Contains(told[0], `field manager "somebody"`) {
			t.Errorf("events %q", told)
		}
	})
}
