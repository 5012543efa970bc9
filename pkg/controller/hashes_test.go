// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// expectHashInUse changes the issuer, and fails unless the status of an MCPServer that does not follow shows the hash of the earlier one.
func (o *operating) expectHashInUse(name, inUse string) {
	o.t.Helper()
	change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
		c.Generation++
		c.Spec.Inline.ClientSecretRef = &v1beta1.SecretKeyRef{Name: "client", Key: "another"}
	})
	o.rest()
	for range 3 {
		o.queue.Add(key(name))
		o.rest()
		if hash := o.server(name).Status.OIDCConfigHash; hash != inUse {
			o.t.Fatalf("the hash is %s, and the proxy was made from %s", hash, inUse)
		}
	}
}

// The hash in the status is of the configuration that the proxy has, also in the passes that have nothing to do while the conflict
// stands that keeps the Deployment from being written.
func TestTheHashIsThatOfTheProxyWhileItsDeploymentIsWithheld(t *testing.T) {
	threeOfOneIssuer(t, func(_ *testing.T, o *operating, _ []string) {
		inUse := o.server("a").Status.OIDCConfigHash
		change(o.apiServer, "a", func(d *appsv1.Deployment) { d.Labels["app"] = "theirs" })
		o.rest()
		o.expectHashInUse("a", inUse)
	})
}

// Neither is a hash that of a configuration that the proxy does not have because another reference holds it, or because Freehold may not
// set its finalizer. Then what is wanted does not serve either.
func TestTheHashIsThatOfTheProxyWhileItIsHeld(t *testing.T) {
	for what, hold := range map[string]func(o *operating){
		"another reference": func(o *operating) { remove[*v1beta1.MCPTelemetryConfig](o.apiServer, "traces") },
		"the finalizer": func(o *operating) {
			o.before.set(func(w write) error {
				if w.manager == managers.Finalizer {
					return forbidden("mcpservers")
				}
				return nil
			})
			change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Finalizers, s.ManagedFields = nil, nil })
		},
	} {
		t.Run(what, func(t *testing.T) {
			server := authenticated("web")
			server.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "traces"}
			traces := &v1beta1.MCPTelemetryConfig{ObjectMeta: metav1.ObjectMeta{Name: "traces", Namespace: "shop", Generation: 1}}
			operate(t, []runtime.Object{server, issuer("https://idp.example.com"), traces}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				inUse := o.server("web").Status.OIDCConfigHash
				if inUse == "" {
					t.Fatal("there is no hash")
				}
				hold(o)
				o.rest()
				o.expectHashInUse("web", inUse)
				if status, reason, message := o.condition("web", v1beta1.ConditionRolledOut); status != metav1.ConditionFalse {
					t.Errorf("RolledOut is %s because of %s: %s", status, reason, message)
				}
			})
		})
	}
}
