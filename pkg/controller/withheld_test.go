// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// A conflict about a label keeps the whole apply of a workload from being made. What is reported of its pods at a new generation is not
// what was true of the last one; neither is it at once when the conflict ends.
func TestAConflictBesideTheTemplateWithholdsIt(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		expect := func(condition string, want metav1.ConditionStatus, when string) {
			t.Helper()
			if status, reason, message := o.condition("web", condition); status != want {
				t.Errorf("%s: %s is %s because of %s: %s", when, condition, status, reason, message)
			}
		}
		o.becomeReady("web")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Labels["app"] = "theirs" })
		o.rest()
		expect(v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, "a label was taken")
		expect(v1beta1.ConditionRolledOut, metav1.ConditionTrue, "a label was taken")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			server.Generation++
			server.Spec.Image = "example.com/other:2"
		})
		o.rest()
		proxyReady(o.apiServer, "web") // Its template names the generation.
		o.rest()
		expect(v1beta1.ConditionRolledOut, metav1.ConditionFalse, "another image")
		o.queue.Add(key("web"))
		o.rest()
		expect(v1beta1.ConditionRolledOut, metav1.ConditionFalse, "another image, and another pass")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationTake, "statefulset.apps/web:.metadata.labels")
		})
		o.rest()
		expect(v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, "the label is taken back")
		expect(v1beta1.ConditionReady, metav1.ConditionFalse, "the StatefulSet's controller has not seen the image")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.ObservedGeneration = set.Generation })
		o.rest()
		expect(v1beta1.ConditionReady, metav1.ConditionTrue, "the StatefulSet's controller says that the pods are of it")
	})
}

// The hash in the status is of the configuration that the proxy has, also in the passes that have nothing to do while the conflict
// stands that keeps the Deployment from being written.
func TestHashWhileTheDeploymentIsWithheld(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, _ []string) {
		inUse := o.server("a").Status.OIDCConfigHash
		change(o.apiServer, "a", func(d *appsv1.Deployment) { d.Labels["app"] = "theirs" })
		o.rest()
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) {
			c.Generation++
			c.Spec.Inline.ClientSecretRef = &v1beta1.SecretKeyRef{Name: "client", Key: "another"}
		})
		o.rest()
		for range 3 {
			o.queue.Add(key("a"))
			o.rest()
			if hash := o.server("a").Status.OIDCConfigHash; hash != inUse {
				t.Fatalf("the hash is %s, and the proxy was made from %s", hash, inUse)
			}
		}
	})
}
