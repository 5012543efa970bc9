// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// countingPasses makes an operator with spans that keeps what MCPServers refer to.
func countingPasses() (*traces, func(*Config)) {
	spans := newTraces()
	_, with := counting()
	return spans, func(c *Config) {
		with(c)
		c.Tracer = spans.provider
	}
}

// passesOfOthers returns how many passes there were over other MCPServers than this one.
func passesOfOthers(looks []look, name string) int {
	return len(slices.DeleteFunc(looks, func(l look) bool { return l.About == "shop/"+name }))
}

// A new member of a group costs the other members nothing, however many there are.
func TestNewMemberDoesNotWakeTheOthers(t *testing.T) {
	objects := []runtime.Object{newGroup("team")}
	for i := range 30 {
		objects = append(objects, inGroup(newServer(fmt.Sprintf("web-%02d", i)), "team"))
	}
	spans, with := countingPasses()
	operate(t, objects, with, func(t *testing.T, o *operating) {
		o.rest()
		spans.took(t)
		o.add(inGroup(newServer("late"), "team"))
		o.rest()
		if n := passesOfOthers(spans.took(t), "late"); n > 2 {
			t.Errorf("%d passes over other members", n)
		}
		if group, _ := get[*v1beta1.MCPGroup](o.apiServer, "team"); group.Status.ServerCount != 31 {
			t.Errorf("%d members", group.Status.ServerCount)
		}

		// What a member reports of its group is still followed.
		change(o.apiServer, "team", func(g *v1beta1.MCPGroup) { g.Finalizers = append(g.Finalizers, "example.com/keep") })
		terminate[*v1beta1.MCPGroup](o.apiServer, "team")
		o.rest()
		if status, reason, _ := o.condition("web-07", v1beta1.ConditionGroupRefValidated); status != metav1.ConditionFalse || reason != v1beta1.ReasonGroupRefNotFound {
			t.Errorf("GroupRefValidated is %s because of %s", status, reason)
		}
	})
}

// A change of a config's status that decides nothing about the MCPServers wakes none, and one that does wakes all.
func TestStatusOfConfigWakesForWhatCounts(t *testing.T) {
	spans := newTraces()
	operate(t, []runtime.Object{newIDP(), referTo(newServer("web"))}, func(c *Config) { c.Tracer = spans.provider }, func(t *testing.T, o *operating) {
		passes := func(edit func(*v1beta1.MCPOIDCConfig)) int {
			o.rest()
			spans.took(t)
			asToolHive(o.apiServer, "idp", "status", edit)
			o.rest()
			return len(spans.took(t))
		}
		set := func(c metav1.Condition) func(*v1beta1.MCPOIDCConfig) {
			c.Reason, c.LastTransitionTime = "Because", metav1.NewTime(bubbleStart)
			return func(idp *v1beta1.MCPOIDCConfig) {
				idp.Status.Conditions = slices.Clone(idp.Status.Conditions)
				meta.SetStatusCondition(&idp.Status.Conditions, c)
			}
		}
		if n := passes(set(metav1.Condition{Type: v1beta1.ConditionDeletionBlocked, Status: metav1.ConditionTrue})); n != 0 {
			t.Errorf("%d passes for a condition that decides nothing", n)
		}
		if n := passes(func(c *v1beta1.MCPOIDCConfig) { c.Status.ConfigHash = "other" }); n == 0 || o.server("web").Status.OIDCConfigHash != "other" {
			t.Errorf("%d passes for another hash, and the MCPServer has %q", n, o.server("web").Status.OIDCConfigHash)
		}
		invalid := metav1.Condition{Type: v1beta1.ConditionValid, Status: metav1.ConditionFalse, ObservedGeneration: o.idp().Generation, Message: "no"}
		if n := passes(set(invalid)); n == 0 {
			t.Error("no pass for a config that is found to be invalid")
		}
		if status, _, message := o.condition("web", v1beta1.ConditionOIDCConfigRefValidated); status != metav1.ConditionFalse {
			t.Errorf("OIDCConfigRefValidated is %s: %s", status, message)
		}
	})
}
