// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// authorities is a ConfigMap with certificate authorities under a key.
func authorities(key, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "shop"}, Data: map[string]string{key: content}}
}

// deployments returns how often the Deployment was written since the last look.
func (o *operating) deployments() (n int) {
	for _, write := range o.took() {
		if strings.Contains(write, "Deployment/web freehold-proxy") {
			n++
		}
	}
	return n
}

// A rollout without its certificate authorities cannot succeed. While their ConfigMap, or its key, is missing the template stays as it
// is; that they are there again with the same content is no reason for a rollout either.
func TestMissingBundleRollsNothing(t *testing.T) {
	corp := issuer("https://idp.example.com")
	corp.Spec.Inline.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "ca.crt"}}
	objects := []runtime.Object{authenticated("web"), corp, authorities("ca.crt", "one")}
	operate(t, objects, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		expect := func(why string, status metav1.ConditionStatus, writes int) {
			t.Helper()
			o.rest()
			if got := o.deployments(); got != writes {
				t.Errorf("%s: %d writes of the Deployment, want %d", why, got, writes)
			}
			if got, reason, message := o.condition("web", v1beta1.ConditionCABundleRefValidated); got != status {
				t.Errorf("%s: CABundleRefValidated=%s %s: %s", why, got, reason, message)
			}
		}
		checksum := func() string {
			deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
			return deployment.Spec.Template.Annotations[v1beta1.AnnotationCAChecksum]
		}
		expect("at rest", metav1.ConditionTrue, 0)
		first := checksum()

		remove[*corev1.ConfigMap](o.apiServer, "ca")
		expect("the ConfigMap is deleted", metav1.ConditionFalse, 0)
		o.add(authorities("ca.crt", "one"))
		expect("it is there again", metav1.ConditionTrue, 0)

		change(o.apiServer, "ca", func(c *corev1.ConfigMap) { c.Data = map[string]string{"other": "one"} })
		expect("the key is gone", metav1.ConditionFalse, 0)
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 })
		expect("an edit rolls the proxy in the meantime", metav1.ConditionFalse, 1)
		change(o.apiServer, "ca", func(c *corev1.ConfigMap) { c.Data = map[string]string{"ca.crt": "one"} })
		expect("the key is there again", metav1.ConditionTrue, 0)
		if got := checksum(); got != first || first == "" {
			t.Errorf("the checksum is %q, and was %q", got, first)
		}

		remove[*corev1.ConfigMap](o.apiServer, "ca")
		expect("the ConfigMap is deleted again", metav1.ConditionFalse, 0)
		o.add(authorities("ca.crt", "two"))
		expect("it is there again with another content", metav1.ConditionTrue, 1)

		remove[*corev1.ConfigMap](o.apiServer, "ca")
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.CABundleRef = nil })
		o.rest()
		if got := checksum(); got != "" {
			t.Errorf("without certificate authorities the checksum is %q", got)
		}
		if deployment, _ := get[*appsv1.Deployment](o.apiServer, "web"); slices.ContainsFunc(deployment.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.ConfigMap != nil && v.ConfigMap.Name == "ca"
		}) {
			t.Error("the volume is still there")
		}
	})
}
