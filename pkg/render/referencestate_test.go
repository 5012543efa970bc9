// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

func TestAStateDiffersOnlyByWhatIsRenderedOrReported(t *testing.T) {
	valid := func(status metav1.ConditionStatus, generation int64, message string) metav1.Condition {
		return metav1.Condition{Type: v1beta1.ConditionValid, Status: status, ObservedGeneration: generation, Message: message}
	}
	config := func(edit func(*v1beta1.MCPOIDCConfig)) ReferenceState {
		object := &v1beta1.MCPOIDCConfig{ObjectMeta: metav1.ObjectMeta{Name: "idp", UID: "1", Generation: 2, ResourceVersion: "3"}}
		object.Status.Conditions = []metav1.Condition{valid(metav1.ConditionFalse, 2, "no")}
		edit(object)
		return StateOf(configs.OIDC, object)
	}
	group := func(edit func(*v1beta1.MCPGroup)) ReferenceState {
		object := &v1beta1.MCPGroup{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "1", Generation: 2, ResourceVersion: "3"}}
		edit(object)
		return StateOf(configs.Group, object)
	}
	configNow, groupNow := config(func(*v1beta1.MCPOIDCConfig) {}), group(func(*v1beta1.MCPGroup) {})
	for name, edit := range map[string]struct {
		config func(*v1beta1.MCPOIDCConfig)
		same   bool
	}{
		"its version":       {func(c *v1beta1.MCPOIDCConfig) { c.ResourceVersion = "4" }, true},
		"a finalizer":       {func(c *v1beta1.MCPOIDCConfig) { c.Finalizers = []string{"a"} }, true},
		"another condition": {func(c *v1beta1.MCPOIDCConfig) { c.Status.Conditions[0].Type = "DeletionBlocked" }, false},
		"one more condition": {func(c *v1beta1.MCPOIDCConfig) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "A"})
		}, true},
		"its UID":               {func(c *v1beta1.MCPOIDCConfig) { c.UID = "2" }, false},
		"its generation":        {func(c *v1beta1.MCPOIDCConfig) { c.Generation = 3 }, false},
		"its deletion":          {func(c *v1beta1.MCPOIDCConfig) { c.DeletionTimestamp = &metav1.Time{} }, false},
		"its hash":              {func(c *v1beta1.MCPOIDCConfig) { c.Status.ConfigHash = "a" }, false},
		"why it is invalid":     {func(c *v1beta1.MCPOIDCConfig) { c.Status.Conditions[0].Message = "never" }, false},
		"valid":                 {func(c *v1beta1.MCPOIDCConfig) { c.Status.Conditions[0].Status = metav1.ConditionTrue }, false},
		"of another generation": {func(c *v1beta1.MCPOIDCConfig) { c.Status.Conditions[0].ObservedGeneration = 1 }, false},
	} {
		if got := config(edit.config) == configNow; got != edit.same {
			t.Errorf("a config with %s changed is the same: %t", name, got)
		}
	}
	for name, edit := range map[string]struct {
		group func(*v1beta1.MCPGroup)
		same  bool
	}{
		"its members":  {func(g *v1beta1.MCPGroup) { g.ResourceVersion, g.Status.Servers = "4", []string{"web"} }, true},
		"its spec":     {func(g *v1beta1.MCPGroup) { g.Generation, g.Spec.Description = 3, "a" }, true},
		"its phase":    {func(g *v1beta1.MCPGroup) { g.Status.Phase = v1beta1.MCPGroupPhaseReady }, false},
		"its deletion": {func(g *v1beta1.MCPGroup) { g.DeletionTimestamp = &metav1.Time{} }, false},
		"its UID":      {func(g *v1beta1.MCPGroup) { g.UID = "2" }, false},
	} {
		if got := group(edit.group) == groupNow; got != edit.same {
			t.Errorf("a group with %s changed is the same: %t", name, got)
		}
	}
}
