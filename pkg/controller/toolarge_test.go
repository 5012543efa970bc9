// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
)

// An MCPServer that is too large is refused and keeps its children as they are; of its spec nothing is kept. It is carried out again once it
// is small enough, and it can be deleted while it is not.
func TestAnMCPServerThatIsTooLargeIsRefused(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		grow := func(args []string) {
			change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Generation, s.Spec.Args = s.Generation+1, args })
			o.rest()
		}
		grow(slices.Repeat([]string{""}, 5000))
		status, reason, message := o.condition("web", v1beta1.ConditionSpecValid)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonTooLarge || !strings.Contains(message, "spec.args has 5000 entries, and may have 1024") {
			t.Errorf("it is %s because of %s: %s", status, reason, message)
		}
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhaseFailed {
			t.Errorf("its phase is %s", phase)
		}
		for _, w := range o.took() {
			if !strings.HasPrefix(w, "apply MCPServer/web") {
				t.Errorf("%s, and it is too large", w)
			}
		}
		kept := o.caches.Item(observed.ServerRef(key("web"))).(*v1beta1.MCPServer)
		if len(kept.Spec.Args) > 0 || kept.Spec.Image != "" {
			t.Errorf("of its spec is kept: %+v", kept.Spec)
		}
		grow([]string{"--small"})
		if status, _, _ := o.condition("web", v1beta1.ConditionSpecValid); status != metav1.ConditionTrue {
			t.Error("it is small enough, and refused")
		}
		if got := o.took(); !slices.Contains(got, "apply StatefulSet/web freehold-backend") {
			t.Errorf("writes %v", got)
		}
		grow(slices.Repeat([]string{""}, 5000))
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.DeletionTimestamp = new(metav1.Now()) })
		o.rest()
		if exists[*v1beta1.MCPServer](o.apiServer, "web") {
			t.Errorf("it is being deleted, and has the finalizers %v", o.server("web").Finalizers)
		}
	})
}

// A configuration that is too large cannot be used: the proxy goes on with the one that it has.
func TestAConfigurationThatIsTooLargeIsNotUsed(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
			c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com/"+strings.Repeat("x", bounds.DefaultSize)
		})
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionOIDCConfigRefValidated)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonOIDCConfigRefNotValid || !strings.Contains(message, "spec is larger than 131072 bytes") {
			t.Errorf("it is %s because of %s: %s", status, reason, message)
		}
		if !strings.Contains(o.read("web"), "https://idp.example.com") {
			t.Error("the proxy has lost its issuer")
		}
	})
}
