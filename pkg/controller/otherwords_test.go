// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/status"
)

// An operator that starts on a status in other words, as an operator of another version has written it, decides as on its own: it writes
// nothing but the status, and that in its own words. No conflict is forgotten.
func TestStatusInOtherWordsDecidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		becomes func(o *operating)
		// stay are the conditions that stay as they were told, as there is nothing new to tell.
		stay []string
		// tries is what a new operator tries once more.
		tries []string
	}{
		"being created": {becomes: func(*operating) {}},
		"ready":         {becomes: func(o *operating) { o.becomeReady("web") }},
		"a conflict": {tries: []string{"apply Deployment/web freehold-proxy"}, becomes: func(o *operating) {
			o.becomeReady("web")
			o.seizeLabel("web")
		}},
		"an invalid spec": {stay: []string{v1beta1.ConditionApplied, v1beta1.ConditionFieldsOwned}, becomes: func(o *operating) {
			o.becomeReady("web")
			change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Generation++; s.Spec.Transport = "carrier-pigeon" })
		}},
		"a proxy that is held": {becomes: func(o *operating) {
			o.becomeReady("web")
			remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		}},
		"taken fields": {becomes: func(o *operating) {
			o.becomeReady("web")
			seize(o.t, o, "evil")
			o.rest()
			o.annotate("web", v1beta1.AnnotationTake, takeImage)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, authenticated("web"), issuer("https://idp.example.com"))
				o := start(t, s, nil)
				o.rest()
				c.becomes(o)
				o.rest()
				o.end()
				before := o.server("web").Status
				other := o.server("web").DeepCopy()
				other.Status.Message = "Otherwise: " + other.Status.Message
				for i := range other.Status.Conditions {
					told := &other.Status.Conditions[i]
					// RolledOut has the image that has served last.
					if told.Type != v1beta1.ConditionRolledOut && !slices.Contains(c.stay, told.Type) {
						told.Message = "Otherwise: " + told.Message
					}
				}
				if _, err := o.servers.ToolhiveV1beta1().MCPServers("shop").ApplyStatus(
					t.Context(), status.Intent(other, other.Status), metav1.ApplyOptions{FieldManager: managers.Status}); err != nil {
					t.Fatal(err)
				}
				o.took()

				o = start(t, s, nil)
				defer o.end()
				o.rest()
				if diff := cmp.Diff(before, o.server("web").Status); diff != "" {
					t.Errorf("the status (-before +after):\n%s", diff)
				}
				o.expect(append(c.tries, "apply MCPServer/web/status freehold-status"), "after a restart")
			})
		})
	}
}
